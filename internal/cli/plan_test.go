package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/scenarios"
)

// TestDryRunRuns: the plan that --dry-run prints is a scenario, and the plan of that scenario is the same.
func TestDryRunRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("body.txt", []byte("body ${x} $$"), 0o600))
	require.NoError(t, os.WriteFile("password", []byte("hunter2\n"), 0o600))
	require.NoError(t, os.WriteFile("order.json", []byte(`{"id": "{{uuid}}"}`), 0o600))
	require.NoError(t, os.Mkdir("bodies", 0o700))
	require.NoError(t, os.WriteFile("bodies/a", []byte("a"), 0o600))
	require.NoError(t, os.WriteFile("bodies/b", []byte("bb"), 0o600))
	var calls [][]string
	for _, line := range strings.Split(strings.TrimSpace(commandLines), "\n") {
		calls = append(calls, splitWords(line))
	}
	require.GreaterOrEqual(t, len(calls), 50)
	shipped := musttest.Get(config.Shipped(scenarios.FS()))(t)
	for _, info := range shipped {
		calls = append(calls, []string{"run", "@" + info.Name, "--set", "restart=true"})
		if info.Name != "activemq/restart" {
			calls[len(calls)-1] = calls[len(calls)-1][:2]
		}
	}
	for _, args := range calls {
		name := strings.Join(args, " ")
		first := callReal(append(args, "--dry-run")...)
		require.Equal(t, result.StatusOK, first.status, "%s: %s", name, first.stderr)
		require.NotContains(t, first.stdout, "hunter2", name)
		require.NoError(t, os.WriteFile("plan.yaml", []byte(first.stdout), 0o600))
		second := callReal("run", "plan.yaml", "--dry-run")
		require.Equal(t, result.StatusOK, second.status, "%s:\n%s%s", name, first.stdout, second.stderr)
		require.Equal(t, named(first.stdout), named(second.stdout), name)
	}
}

// named returns a plan without comments and the name, which a plan of a command line has from its file.
func named(text string) string {
	return strings.Replace(withoutComments(text), "name: plan\n", "", 1)
}

// splitWords splits a line at blanks outside of single quotes.
func splitWords(line string) (list []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			list = append(list, part)
			continue
		}
		list = append(list, strings.Fields(part)...)
	}
	return list
}

const commandLines = `
amqp client
amqp producer
amqp consumer
stomp client queue://A queue://B
rocketmq client topic://T
mem client --verify
mem client --verify-window 1m --threshold arrived_late==0
amqp client --embedded
amqp connections --rate 500 --count 5000 --hold 30s --threshold 'open.p99 < 1s' --threshold 'connections.live >= 5000'
stomp connections --rate 'ramp 0 to 500 for 10s' --churn --hold 10s --duration 1m --messages 10 queue://A
rocketmq connections --max-pending 50 --count 1000 --attach producer --num-destinations 3 topic://A
amqp client --embedded --embedded-faults lose=1000,delay=5ms --verify --allow-lost --allow-duplicates
amqp producer --rate 5000 --duration 1m30s --warmup 5s
amqp producer --rate 'ramp 0 to 5000 for 60s, 5000 for 5m, pause 10s'
amqp producer --rate 0.5 --message-count 10
amqp producer --rate 500 --arrivals poisson --seed 42
amqp client --rate 500 --num-destinations 10 --destination-skew zipf:1.1
stomp client --group-keys 1000 --group-skew zipf:1.2 --seed 42
amqp producer --rate 'poisson 3000 for 60s, ramp 0 to 5000 for 60s, even 10' --arrivals poisson
amqp client --message-count 1000 --max-pending 100 --producers 3 --consumers 4 --num-destinations 2 queue://Q
amqp client --max-pending 0 --duration 10
amqp client --message-size 64KiB --fill zeros
amqp client --message-size 1KiB/80:64KiB/15:8/5
amqp client --message-size lognormal:2KiB:1.0 --fill zeros --seed 7
amqp client --body-template order.json --seed 7
amqp client --trace-sample 1/1000 --result out
amqp client --remote-write https://u@h:9090 --remote-write-interval 10s --remote-write-header X-Scope-OrgID=t
amqp client --property 'orderId={{seq}}' --property 'kind={{pick "a" "b"}}' --property run=1 --seed 7
amqp client --message-size 1:2:3
amqp producer --body-file body.txt
amqp producer --body-file bodies
amqp client --message-type text --priority 0 --group g --property a=b --property 'c=$d ${e}' --property run=1
amqp client --priority 9 --persistent --ttl 5s
amqp client --durable --clientID c topic://T
amqp client --durable --clientID c --keep-subscription topic://T
amqp client --shared 2 topic://T
amqp client --selector 'a = 1 AND b <> 3' --credit 50
amqp consumer -o declare=stream --stream-offset 10m --stream-filter red,blue --stream-unfiltered topic://S
stomp client -o declare=stream --stream-filter-value red --stream-offset first topic://S
amqp client --tx --tx-size 10 --commit-interval 10
amqp consumer --tx
amqp client --consumer-work exp:2ms --consumer-rate 100 --consumer-fail 1% --consumer-fail-as reject
stomp client --consumer-work exp:3ms --consumer-fail 0.25%
amqp requester --rate 200 --max-pending 100 --reply-timeout 1s --threshold 'timed_out == 0' --threshold 'round-trip.p99 < 50ms' queue://S
mem requester --reply-to queue://R queue://S
amqp responder --work exp:2ms --reply-size 64 --consumers 4 --threshold 'service.p99 < 9ms' queue://S
amqp service --rate 200 --work 2ms --threshold 'answered >= 1' --reply-to queue://R --reply-size 0 queue://S
amqp client --shared-connections --threads 4 --producers 9 --consumer-connections 2 --consumers 5
amqp client --reconnect --reconnect-timeout 5s --wait-for-broker 10s
amqp client --reconnect --reconnect-spread 5s --seed 7
amqp client --producers 5 --ramp-workers 10s --duration 60
amqp client --local-address 127.0.0.2-127.0.0.9,127.0.0.11
amqp client --reconnect --in-doubt resend
stomp client --send-timeout 2s --in-doubt resend
amqp client --hosts spread --url amqp://a:1,b:2
amqp client --url 'failover:(tcp://a:1,tcp://b:2)'
amqp client --url 'failover:(tcp://a:1,tcp://b:2)?randomize=false' --reconnect=false
amqp client --url 'failover:(tcp://a:1,tcp://b:2)' --hosts order
amqp client --url 'failover:(tcp://u:hunter2@a:1,tcp://u:hunter2@b:2)'
amqp client --url amqp://u:hunter2@h
amqp client --user u --password-file password
amqp client --user u --password-file password --management-url http://h:8161
amqp client --client library --connect-timeout 3s
amqp client --url amqps://h --tls-insecure --tls-server-name x
amqp client -o settle=at-most-once -o idle-timeout=30s
rocketmq client -o queues=8 --send-timeout 2s
amqp client --consumer-url stomp://h:61613
amqp client --consumer-protocol stomp --consumer-url stomp://u:hunter2@h
amqp client --threshold 'ack.p99 < 50ms' --threshold 'sent == 10' --label heap=1g --label 'broker=Artemis 2.56'
amqp client --stall-threshold 0 --drain-timeout 5s --broker-count off
amqp client --marks 100k,500k --message-count 1M
amqp client --max-message-size 1MiB --message-size 2MiB
amqp client --delivery-delay 2s --url amqp://h
amqp client --verify --allow-lost --allow-damaged --fail-on-disorder --rate 10
amqp client --result r --json j.json --format short --interval 2s
amqp producer --find-max 'ack.p99 < 10ms'
`

// TestRunAgain: the folder of a result has the plan and the command line, and perfmq run repeats the run.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	scenario := write(t, "two.yaml", twoSteps)
	environ := map[string][]string{"line": {"PERFMQ_PASSWORD=hunter2", "PERFMQ_OPTION=auth=u:hunter2"}}
	for name, args := range map[string]string{
		"line":     "mem client --message-count 50 --producers 2 --verify --user u --password hunter2 -o auth=u:hunter2 --threshold sent==50 queue://A",
		"scenario": "run " + scenario,
	} {
		first, second := filepath.Join(dir, name), filepath.Join(dir, name+"-2")
		got := call(nil, append(strings.Fields(args), "--result", first)...)
		require.Equal(t, result.StatusOK, got.status, got.stderr)
		text := musttest.Get(os.ReadFile(filepath.Join(first, result.PlanFile)))(t)
		require.Contains(t, string(text), "\n# perfmq "+strings.Fields(args)[0]+" ")
		require.NotContains(t, string(text), "hunter2")
		got = call(environ[name], "run", first, "--result", second)
		require.Equal(t, result.StatusOK, got.status, got.stderr)
		again := musttest.Get(os.ReadFile(filepath.Join(second, result.PlanFile)))(t)
		require.Equal(t, withoutComments(string(text)), withoutComments(string(again)))
		before := musttest.Get(result.Read(first))(t)
		after := musttest.Get(result.Read(second))(t)
		var plans [2]map[string]any
		require.NoError(t, json.Unmarshal(before.Plan, &plans[0]))
		require.NoError(t, json.Unmarshal(after.Plan, &plans[1]))
		require.Equal(t, plans[0], plans[1])
		require.Equal(t, before.PlanHash, after.PlanHash)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "line", result.PlanFile)))
	got := call(nil, "run", filepath.Join(dir, "line"))
	require.Equal(t, result.StatusUsage, got.status)
	require.Contains(t, got.stderr, "hint: the folder of a result has its plan\n")
}

// withoutComments returns a plan without what begins with #.
func withoutComments(text string) (plan string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			plan += line
		}
	}
	return plan
}

// realApp returns the program with its real protocols.
func realApp() *app {
	a := &app{}
	a.Factories, _ = config.ByClient(mem.With(drivers.All()))
	return a
}

// realHelp returns the help of a command of the program with its real protocols.
func realHelp(t *testing.T, args ...string) string {
	t.Helper()
	got := callReal(args...)
	require.Zero(t, got.status, got.stderr)
	return got.stdout
}

// The reference page is generated from the table of settings.
func TestSettingsReference(t *testing.T) {
	a := realApp()
	var b strings.Builder
	b.WriteString(`# Settings

All settings, made from the one table of the program by a test (` + "`go test ./internal/cli -run TestSettingsReference -update`" + `). Each is a flag
of the commands in the column "commands" and of ` + "`perfmq run`" + `, a variable of the environment, and, where the column "in a scenario" names
places, a key of scenario files with the flag's name (` + "[docs/scenarios.md](scenarios.md)" + `; the JSON Schema is printed by
` + "`perfmq scenario schema`" + `). Flags win over variables, those over ` + "`--set`" + `, that over the file, and the file over the defaults.

`)
	for _, group := range config.Sections() {
		fmt.Fprintf(&b, "## %s\n\n| flag | variable | default | commands | in a scenario | |\n| --- | --- | --- | --- | --- | --- |\n", group)
		for _, d := range config.All() {
			if d.Section != group {
				continue
			}
			flag := "--" + d.Name
			if d.Short != "" {
				flag = "-" + d.Short + ", " + flag
			}
			if d.Arg != "" {
				flag += " " + d.Arg
			}
			commands := join(d.Roles)
			if len(d.Roles) == 0 {
				commands = "all"
			}
			places := ""
			if d.Places != 0 {
				places = d.Places.String()
			}
			cells := []string{"`" + flag + "`", "`" + d.Variables()[0] + "`", d.Default, commands, places, d.Help}
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "|", "\\|")
			}
			b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		}
		b.WriteString("\n")
	}
	b.WriteString("## Options of the protocols\n\n`-o KEY=VALUE`; in a scenario, `options:` of a broker.\n\n")
	for i := range a.Factories {
		f := &a.Factories[i]
		fmt.Fprintf(&b, "### %s\n\n| option | default | |\n| --- | --- | --- |\n", f.Title)
		for _, o := range driver.Describe(config.NewOptions(f)) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", o.Name, o.Default, strings.ReplaceAll(o.Help, "|", "\\|"))
		}
		b.WriteString("\n")
	}
	const path = "../../docs/settings.md"
	text := strings.TrimRight(b.String(), "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // a page of the documentation
	}
	have := musttest.Get(os.ReadFile(path))(t)
	require.True(t, string(have) == text, "docs/settings.md is stale: -update renews it")
}

func join(roles []plan.Role) string {
	texts := make([]string, len(roles))
	for i, role := range roles {
		texts[i] = string(role)
	}
	return strings.Join(texts, ", ")
}

// A broker of a scenario gets no URL, login or options of another protocol, and the file is not to blame for a
// variable.
func TestVariablesOfOtherProtocols(t *testing.T) {
	const groups = "groups:\n  a: {role: producer, broker: one, destination: topic://T}\n  b: {role: consumer, broker: two, destination: topic://T}\nsteps:\n  - {name: s, duration: 1s}\n"
	mem := write(t, "mem.yaml", "brokers:\n  one: {protocol: mem}\n  two: {protocol: mem}\n"+groups)
	both := write(t, "both.yaml", "brokers:\n  one: {protocol: alpha, url: \"alpha://file\"}\n  two: {protocol: beta, url: \"beta://file\"}\n"+groups)
	for _, c := range []struct {
		environ, args string
		want          []string // in the plan and its notes
		not           []string
	}{
		{"PERFMQ_URL=beta://env PERFMQ_OPTION=settle=late", "run " + both + " --dry-run", []string{"alpha://file", "beta://env"}, []string{"beta://file", "settle"}},
		{"PERFMQ_URL=alpha://env PERFMQ_USER=joe PERFMQ_PASSWORD=x", "run " + mem + " --dry-run", []string{"protocol: mem"}, []string{"alpha://env", "joe"}},
		{"PERFMQ_USER=joe PERFMQ_PASSWORD=x", "run " + both + " --dry-run", []string{"user: joe"}, nil},
		{"PERFMQ_URL=alpha://env", "run " + mem + " --dry-run", []string{"protocol: mem"}, []string{"alpha://env"}},
		{"", "run " + both + " --url beta://flag --dry-run", []string{"alpha://file", "beta://flag"}, []string{"beta://file"}},
		{"", "run " + both + " -o settle=late --dry-run", []string{"settle: late"}, nil},
	} {
		got := call(strings.Fields(c.environ), strings.Fields(c.args)...)
		require.Equal(t, result.StatusOK, got.status, got.stderr)
		for _, want := range c.want {
			require.Contains(t, got.stdout, want)
		}
		for _, not := range c.not {
			require.NotContains(t, got.stdout, not)
		}
	}
	for _, c := range []struct{ environ, args, want string }{
		{"", "run " + mem + " --url beta://h", "error: " + mem + ": broker one: --url beta://h: beta is no scheme of mem\n"},
		{"", "run " + mem + " -o reject=5 -o settle=late", "--option settle: there is no such option\n"},
		{"PERFMQ_URL=http://h", "run " + mem, "error: " + mem + ": broker one: --url http://h: http is no scheme of mem\nhint: mem URLs begin with mem://\n" +
			"error: " + mem + ": broker two: --url http://h: http is no scheme of mem\nhint: mem URLs begin with mem://\n"},
		{"PERFMQ_CLIENT=memlb", "run " + mem, "error: " + mem + ": broker one: --client memlb: must be one of native, memlib\nhint: did you mean memlib?\n" +
			"error: " + mem + ": broker two: --client memlb: must be one of native, memlib\nhint: did you mean memlib?\n"},
		{"PERFMQ_OPTION=xyzxyz=1", "run " + mem, "--option xyzxyz: there is no such option\n"},
	} {
		got := call(strings.Fields(c.environ), strings.Fields(c.args)...)
		require.Equal(t, result.StatusUsage, got.status, got.stderr)
		require.Contains(t, got.stderr, c.want)
		require.NotRegexp(t, `yaml:\d`, got.stderr, "the file is not to blame")
	}
}

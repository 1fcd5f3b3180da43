package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// write writes a scenario into a folder of its own and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const twoSteps = `
name: two
vars: {count: 500, size: 64}
labels: {broker: none, heap: 1g}
verify: true
broker: {url: "mem://local"}
groups:
  senders: {role: producer, destination: queue://A, message-count: "${count}", message-size: "${size}", max-pending: 10}
  readers: {role: consumer, destination: queue://A}
steps:
  - name: fill
    groups: [senders]
  - name: both
    until: drained
    groups:
      senders: {message-count: 300}
      readers:
thresholds:
  - lost == 0
  - "fill: completed == ${count}"
  - "both: received == 800"
`

// Precedence, lowest first: defaults, the file, --set, variables, flags. The output names the parts of the file that
// they were applied to.
func TestPrecedenceOfScenarios(t *testing.T) {
	t.Parallel()
	file := write(t, "two.yaml", twoSteps)
	for _, c := range []struct {
		name, environ, args string
		sent                string
		note                string
	}{
		{"file", "", "", "800", ""},
		{"set", "", "--set count=200", "500", ""},
		{"flag", "", "--message-count 100", "200", ""},
		{"variable", "PERFMQ_MESSAGE_COUNT=150", "", "300", ""},
		{"flag over variable", "PERFMQ_MESSAGE_COUNT=150", "--message-count 100", "200", ""},
		{"scale", "", "--scale 0.5", "400", "note: --scale 0.5: "},
		{"to all", "", "--clientID me --connect-timeout 3", "800", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := call(strings.Fields(c.environ), append([]string{"run", file}, strings.Fields(c.args)...)...)
			require.Contains(t, got.stdout, "--- total sent:"+strings.Repeat(" ", 17-len(c.sent))+c.sent+"\n", got.stderr)
			require.Contains(t, got.stderr, c.note)
		})
	}
}

// Mistakes of the file, of its settings and of their combination are reported together, with their positions, and
// nothing is sent.
func TestMistakesOfScenarios(t *testing.T) {
	file := write(t, "bad.yaml", `name: bad
broker: {protocol: mem, url: "mem://u:topsecret@local", passwrod: topsecret}
groups:
  senders: {role: producer, destination: queue://A, max-pendng: 5, rate: fast}
steps:
  - {name: one, duration: soon}
thresholds: [received.avgg > 1]
`)
	got := call(nil, "run", file)
	require.Equal(t, result.StatusUsage, got.status)
	require.NotContains(t, got.stderr, "topsecret")
	for _, want := range []string{
		file + ":2:", "received.avgg", "did you mean password?", file + ":4:", "did you mean max-pending?", "ramp, stair, burst or pause", file + ":6:", "must be a time such as",
	} {
		require.Contains(t, got.stderr, want)
	}
	file = write(t, "bad.yaml", `broker: {protocol: mem}
groups:
  senders: {role: producer, destination: queue://A, priority: 9, commit-interval: 5, max-pending: 2}
  readers: {role: consumer, destination: queue://A, durable: true, tx-size: 10, credit: 5}
steps:
  - {name: one, duration: 5, warmup: 9}
thresholds: [lost == 0]
`)
	got = call(nil, "run", file)
	require.Equal(t, result.StatusUsage, got.status)
	for _, want := range []string{
		"group readers: durable needs a destination topic://NAME", "tx-size 10 is above credit 5", "warmup 9s leaves nothing to measure of duration 5s",
		file + ":7:14: threshold \"lost == 0\": this run does not measure it", "hint: add --verify",
	} {
		require.Contains(t, got.stderr, want)
	}
	for _, c := range [][2]string{
		{"run", "error: perfmq run needs FILE|@NAME\n"},
		{"run " + file + " " + file, "error: perfmq run carries out one scenario: 2 were given\nhint: run one after the other\n"},
		{"run " + file + " --scale 2", "must be above 0 and at most 1"},
		{"run " + file + " --set x", "--set=x: must be KEY=VALUE"},
		{"run " + file + " --set nope=1", "nope"},
		{"run nofile.yaml", "scenario nofile.yaml"},
		{"run " + write(t, "r.yaml", strings.Replace(twoSteps, "message-count: 300", "rate: 50% of fill.completed", 1)), "must be like 80% of STEP.RATE"},
		{"run " + write(t, "r.yaml", strings.Replace(twoSteps, "message-count: 300", "rate: 50% of fill.ack.p99", 1)), "ack.p99"},
		{"run " + write(t, "r.yaml", twoSteps) + " --url beta://h", "beta is no scheme of mem"},
		{"run @nope", "this program has no scenarios inside"},
		{"run " + file + " --max-pendin 5", "did you mean --max-pending?"},
		{"run " + file + " --json", "flag needs an argument"},
	} {
		got := call(nil, strings.Fields(c[0])...)
		require.Equal(t, result.StatusUsage, got.status, c[0])
		require.Contains(t, got.stderr, c[1], c[0])
	}
}

// The commands of perfmq scenario.
func TestScenarioCommands(t *testing.T) {
	require.Equal(t, string(config.Skeleton()), call(nil, "scenario", "init").stdout)
	two := write(t, "two.yaml", twoSteps)
	require.Equal(t, result.StatusUsage, call(nil, "run", "--dry-run", two, "nofile").status)

	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(call(nil, "scenario", "schema").stdout), &schema))
	got := call(nil, "run", "--dry-run", two)
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	golden(t, "dry-run-scenario.txt", strings.ReplaceAll(got.stdout, filepath.Dir(two), "DIR"))
}

// A password anywhere in a scenario file is in no output and in no message.
func TestScenariosShowNoSecret(t *testing.T) {
	t.Parallel()
	for name, broker := range map[string]string{
		"setting":  `{protocol: mem, user: u, password: hunter2, options: {auth: "u:hunter2"}}`,
		"URL":      `{url: "mem://u:hunter2@local", options: {auth: "u:hunter2"}}`,
		"variable": `{protocol: mem, user: u, password: "${secret}", options: {auth: "u:hunter2"}}`,
		"wrong":    `{protocol: mem, user: u, password: hunter2, options: {auth: "u:other"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vars := ""
			if strings.Contains(broker, "${secret}") {
				vars = "vars: {secret: hunter2}"
			}
			file := write(t, "s.yaml", vars+`
labels: {note: the password is hunter2}
verify: true
broker: `+broker+`
groups:
  senders: {role: producer, destination: queue://A, message-count: 10, properties: {token: hunter2}}
  readers: {role: consumer, destination: queue://A}
steps:
  - {name: one, before: "echo hunter2"}
  - {name: two, groups: [senders, readers], after: "echo hunter2 >&2; exit 1"}
`)
			dir := t.TempDir()
			got := call(nil, "run", file, "--result", filepath.Join(dir, "result"), "--json", filepath.Join(dir, "a.json"), "--hdr", filepath.Join(dir, "a.hdr"))
			require.NotEqual(t, result.StatusUsage, got.status, got.stderr)
			requireNoSecret(t, "stdout", got.stdout)
			requireNoSecret(t, "stderr", got.stderr)
			dry := call(nil, "run", "--dry-run", file)
			require.Equal(t, result.StatusOK, dry.status, dry.stderr)
			requireNoSecret(t, "dry run", dry.stdout)
			require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				requireNoSecret(t, path, string(text))
				return err
			}))
		})
	}
}

// A step may change the kinds of messages of a group.
func TestStepsWithOtherMessages(t *testing.T) {
	t.Parallel()
	file := write(t, "kinds.yaml", `
verify: true
broker: {url: "mem://local"}
groups:
  senders: {role: producer, destination: queue://A, message-count: 90, max-pending: 10, messages: [{weight: 1, message-size: 64}, {weight: 2, message-size: 128}]}
  readers: {role: consumer, destination: queue://A}
steps:
  - {name: two, groups: [senders]}
  - name: three
    until: drained
    groups:
      senders: {messages: [{message-size: 1}, {message-size: 2}, {message-size: 3}]}
      readers:
  - {name: one, groups: {senders: {message-size: 4}, readers: }, until: count}
thresholds: [lost == 0, damaged == 0, "three: received == 180", group.senders.completed == 270]
`)
	dir := filepath.Join(t.TempDir(), "result")
	got := call(nil, "run", file, "--result", dir)
	require.Equal(t, result.StatusOK, got.status, got.stderr+got.stdout)
	r := musttest.Get(result.Read(dir))(t)
	require.EqualValues(t, 270, r.Verification.Total.Once)
	var p struct {
		Steps []struct {
			Until  string
			Groups []struct {
				Messages []struct {
					Size int `json:"message-size"`
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(r.Plan, &p))
	require.Equal(t, "drained", p.Steps[1].Until)
	for i, kinds := range []int{2, 3, 2} {
		require.Len(t, p.Steps[i].Groups[0].Messages, kinds, "step %d", i)
	}
	require.Equal(t, 3, p.Steps[1].Groups[0].Messages[2].Size)
}

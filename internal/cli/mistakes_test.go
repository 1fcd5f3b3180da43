package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfmq/perfmq/pkg/result"
	"github.com/stretchr/testify/require"
)

const known = "known are alpha, beta, broker, compare, completion, help, merge, report, run, scenario, verify, version\n"

// TestMistakes makes one mistake at a time. All are found without connecting.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for _, c := range []struct {
		args   string
		stderr string
	}{
		{"alpha", ""}, // the help
		{"alph client", "error: unknown command \"alph\" of perfmq\nhint: did you mean perfmq alpha?\n"},
		{"alpha clint", "error: unknown command \"clint\" of perfmq alpha\nhint: did you mean perfmq alpha client?\n"},
		{"help alpha clint", "error: unknown command \"clint\" of perfmq alpha\nhint: did you mean perfmq alpha client?\n"},
		{"help alpha client x", "error: unknown command \"x\" of perfmq alpha client\nhint: perfmq alpha client --help lists all flags\n"},
		{"completion zsh2", "error: unknown command \"zsh2\" of perfmq completion\nhint: did you mean perfmq completion zsh?\n"},
		{"version x", "error: perfmq version takes no arguments, but x was given\nhint: perfmq version --help lists all flags\n"},
		{"alpha client --rte=5", "error: unknown flag: --rte\nhint: did you mean --rate?\n"},
		{"alpha client --xyzxyz 5", "error: unknown flag: --xyzxyz\nhint: perfmq alpha client --help lists all flags\n"},
		{"alpha client -r", "error: unknown flag -r\nhint: perfmq alpha client --help lists all flags\n"},
		{"alpha client --settle late", "error: unknown flag: --settle\nhint: write -o settle=...\n"},
		{"alpha consumer --rate 5", "error: unknown flag: --rate\nhint: it is a flag of perfmq alpha client, perfmq alpha connections, perfmq alpha producer, perfmq alpha requester and perfmq alpha service\n"},
		{"alpha client --find-max sent.avg>5 --message-count 9 --hdr x", "error: --message-count is for one run, and there are several\nhint: leave it out\n" +
			"error: --hdr is for one run, and there are several\nhint: leave it out\n"},
		{"alpha client --find-max ack.p98<5ms", "error: --find-max=ack.p98<5ms: there is no metric \"ack.p98\": did you mean ack.p90? perfmq scenario metrics lists all\n"},
		{"alpha client --rate", "error: flag needs an argument: --rate\nhint: perfmq alpha client --help lists all flags\n"},
		{"alpha client --result --verify", "error: --result needs a value; --verify follows it\nhint: perfmq alpha client --help lists all flags\n"},
		{"alpha client -o --password=x", "error: --option needs a value; --password follows it\nhint: perfmq alpha client --help lists all flags\n"},
		{"run x.yaml --set --dry-run", "error: --set needs a value; --dry-run follows it\nhint: perfmq run --help lists all flags\n"},
		{"alpha client --duration 5 minutes queue://T", "error: the plain name minutes stands beside queue://T\nhint: write --FLAG=VALUE; a queue of that name is queue://minutes\n"},
		{"alpha client topic://T --persistent false", "error: the plain name false stands beside topic://T\nhint: write --FLAG=VALUE; a queue of that name is queue://false\n"},
		{"alpha client --producers 0", "error: --producers=0: must be a whole number of at least 1\n"},
		{"alpha client --property x", "error: --property=x: must be KEY=VALUE\n"},
		{"alpha client --property time=1", "error: --property time=... is taken: perfmq sets it on each message\nhint: choose another key\n"},
		{"alpha client -o setle=late", "error: --option setle: there is no such option\nhint: did you mean settle?\n"},
		{"alpha client -o size=-1 --url alpha://u:p@h", "error: option size is negative at alpha://u@h\n"},
		{"alpha client --url localhost:1", "error: --url localhost:1 has no scheme\nhint: write alpha://localhost:1\n"},
		{"alpha producer --url beta://h", "error: --url beta://h: beta is no scheme of alpha\nhint: use perfmq beta producer\n"},
		{"alpha client --url http://u:p@h", "error: --url http://u@h: http is no scheme of alpha\nhint: alpha URLs begin with alpha://, alphas://\n"},
		{"alpha client --protocol BETA", "error: --protocol BETA does not agree with the command perfmq alpha\nhint: use perfmq beta client\n"},
		{"alpha client --consumer-protocol x", "error: --consumer-protocol x: must be one of alpha, beta, mem\n"},
		{"alpha client --consumer-url beta://h", "error: Beta has no queues: queue://TEST\nhint: use topic://TEST\n"},
		{"alpha client --password x", "error: --password needs --user\nhint: add --user\n"},
		{"alpha client --user u --password x --password-file y", "error: --password does not work with --password-file\nhint: leave one of them out\n"},
		{"alpha client --user u --password-file " + empty, "error: --password-file " + empty + ": the password is empty\n"},
		{"alpha client --password-file /no/file", "error: --password-file: /no/file: no such file or directory\nhint: check the path\n"},
		{"alpha client --body-file " + empty + " --fill zeros", "error: --fill does not work with --body-file\nhint: leave one of them out\n"},
		{"alpha client --body-file " + empty + " --body-template x", "error: --body-template does not work with --body-file\nhint: leave one of them out\n"},
		{"alpha client --body-template x --message-size 1", "error: --message-size does not work with --body-template\nhint: leave one of them out\n"},
		{"alpha client --body-template /no/file", "error: --body-template: /no/file: no such file or directory\nhint: check the path\n"},
		{"alpha client --body-template " + empty, "error: --body-template: " + empty + ":1:1: there is no field such as {{seq}}\nhint: --body-file sends a file as it is\n"},
		{"alpha client --property k=a{{uid}}", "error: --property: k:1:2: there is no field \"uid\"\nhint: did you mean uuid?\n"},
		{"alpha client --message-size 1KiB/80:64KiB/0", "error: --message-size=1KiB/80:64KiB/0: must be like 1KiB/80:64KiB/20: a weight must be a whole number from 1 to 1000000\n"},
		{"alpha client --message-size lognormal:1KiB", "error: --message-size=lognormal:1KiB: must be like lognormal:2KiB:1.0:64KiB: the median, sigma up to 10, and the maximum\n"},
		{"alpha client --message-size lognormal:0:1", "error: --message-size=lognormal:0:1: must be like lognormal:2KiB:1.0:64KiB: the median, sigma up to 10, and the maximum\n"},
		{"alpha client --message-size lognormal:1:x", "error: --message-size=lognormal:1:x: must be like lognormal:2KiB:1.0:64KiB: the median, sigma up to 10, and the maximum\n"},
		{"alpha client --message-size lognormal:1:11", "error: --message-size=lognormal:1:11: must be like lognormal:2KiB:1.0:64KiB: the median, sigma up to 10, and the maximum\n"},
		{"alpha client --message-size lognormal:1:0", "error: --message-size=lognormal:1:0: must be like lognormal:2KiB:1.0:64KiB: the median, sigma up to 10, and the maximum\n"},
		{"alpha client --message-size lognormal:5:1:4", "error: --message-size=lognormal:5:1:4: must be like lognormal:2KiB:1.0:64KiB: the median, sigma up to 10, and the maximum\n"},
		{"alpha client --message-size lognormal:1:1:9:9", "error: --message-size=lognormal:1:1:9:9: must be like lognormal:2KiB:1.0:64KiB: the median, sigma up to 10, and the maximum\n"},
		{"alpha client --message-size 1/999983:2/999979", "error: there are 1999962 messages by their weights, more than 1000000\nhint: give rounder weights\n"},
		{"alpha client --url=", "error: --url=\"\": is empty\n"},
		{"alpha client --result -", "error: --result -: only --json writes to standard output\nhint: name a folder\n"},
		{"alpha client --metrics 9400", "error: --metrics 9400: must be HOST:PORT, :PORT (on loopback) or [::]:PORT (on all addresses)\n" +
			"hint: write HOST:PORT such as 127.0.0.1:9400, or :9400\n"},
		{"alpha client --interval 500ms", "error: --interval=500ms: 500ms is shorter than 1s\n"},
		{"alpha client --stall-threshold 100ms", "error: --stall-threshold=100ms: 100ms is shorter than 200ms\n"},
		{"alpha client --format SHORT", "error: --format=SHORT: must be one of artemis, rocketmq, short\nhint: did you mean --format=short?\n"},
		{"alpha client --threshold p99<20ms", "error: --threshold=p99<20ms: there is no metric \"p99\": did you mean delay.p99, or ack.p99, or response.p99, or transfer.p99? perfmq scenario metrics lists all\n"},
		{"alpha client --threshold stall<1s", "error: --threshold=stall<1s: there is no metric \"stall\": did you mean stall.max? perfmq scenario metrics lists all\n"},
		{"alpha client --threshold lost==0,failed==0", "error: --threshold=lost==0,failed==0: holds several demands: give a threshold for each\n"},
		{"alpha client que://A", "error: destination \"que://A\": unknown kind \"que\", must be queue://NAME or topic://NAME\n" +
			"hint: write queue://NAME, topic://NAME or ADDRESS::QUEUE, quoted if it has blanks\n"},
		{"beta client --commit-interval 5 topic://T", "error: --commit-interval: Beta does not support that\nhint: leave --commit-interval out\n"},
		{
			"alpha client --client library --tx",
			"error: --tx: Alpha 1.0 over alphalib does not support that\nhint: leave --tx out, or use --client native\n",
		},
		{"alpha client --client memlib", "error: --client memlib: must be one of native, alphalib\n"},
		{
			"beta client --client library topic://T",
			"error: --client library: must be one of native\n",
		},
		{
			"alpha client --client library --consumer-url beta://h topic://T",
			"error: --client library: must be one of native\n",
		},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := call(nil, strings.Fields(c.args)...)
			require.Equal(t, result.StatusUsage, got.status)
			require.Empty(t, got.stdout)
			if c.stderr == "" {
				require.Contains(t, got.stderr, "Usage\n  perfmq alpha COMMAND")
				return
			}
			require.Equal(t, c.stderr, got.stderr)
		})
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	got := call([]string{"PERFMQ_RAET=5", "PERFMQ_WARMUP=x", "PERFMQ_PRODUCERS=none"},
		"alpha", "client", "--max-pending", "x", "--producers", "2", "--durable", "--json", "/dev/null/x",
		"-o", "size=x", "--url", "x://u:secret@h", "A", "A", "b c", "--", "--not-a-flag")
	require.Equal(t, result.StatusUsage, got.status)
	require.NotContains(t, got.stderr, "secret")
	golden(t, "mistakes.txt", got.stderr)
}

// TestNoMistake: what looks like a mistake of the command line, but may be meant.
func TestNoMistake(t *testing.T) {
	for _, args := range []string{
		"--selector --x", "--verify --persistent", "-- --selector --verify", "orders payments", "queue://A X::Y",
	} {
		got := call(nil, strings.Fields("alpha client --dry-run "+args)...)
		require.Equal(t, result.StatusOK, got.status, got.stderr)
	}
}

// The command is found before anything looks at the flags, wherever these stand.
func TestCommandsComeFirst(t *testing.T) {
	const client = "Send messages and receive them again over Alpha 1.0, and measure the broker.\n"
	for args, want := range map[string]string{
		"alpha cleint --embedded":            "error: unknown command \"cleint\" of perfmq alpha\nhint: did you mean perfmq alpha client?\n",
		"--rate 5 alph client":               "error: unknown command \"alph\" of perfmq\nhint: did you mean perfmq alpha?\n",
		"--durable alpha client":             "error: unknown command \"client\" of perfmq\nhint: " + known,
		"client":                             "error: unknown command \"client\" of perfmq\nhint: " + known,
		"list":                               "error: unknown command \"list\" of perfmq\nhint: " + known,
		"alpha --rte 5 client":               "error: unknown flag: --rte\nhint: did you mean --rate?\n",
		"--rate 5 alpha client --persistent": "  rate: \"5\"\n",
		"--client-id client alpha client":    "  clientID: client\n",
		"-o size=7 alpha client":             "    size: \"7\"\n",
		"help alpha client":                  client,
		"alpha help":                         "Load over Alpha 1.0.\n",
	} {
		t.Run(args, func(t *testing.T) {
			list := strings.Fields(args)
			if strings.HasPrefix(want, " ") {
				list = append(list, "--dry-run")
			}
			got := call(nil, list...)
			if strings.HasPrefix(want, "error: ") {
				require.Equal(t, result.StatusUsage, got.status)
				require.Equal(t, want, got.stderr)
				return
			}
			require.Equal(t, result.StatusOK, got.status, got.stderr)
			require.Contains(t, got.stdout, want)
		})
	}
}

func TestConnectStatus(t *testing.T) {
	got := call(nil, "alpha", "producer", "--message-count", "1")
	require.Equal(t, result.StatusConnect, got.status)
	require.Equal(t, "error: log in: who are you\nhint: no user was given: add --user and --password\n", got.stderr)

	got = call([]string{"PERFMQ_USER=u"}, "alpha", "producer", "--message-count", "1")
	require.Equal(t, "error: log in: who are you\nhint: check --user\n", got.stderr)

	got = call(nil, "alpha", "producer", "--message-count", "1", "--url", "alpha://u@h")
	require.Equal(t, "error: log in: who are you\nhint: check --user\n", got.stderr)

	got = call(nil, "mem", "client", "--url", "mem://u:secret@unreachable")
	require.Equal(t, result.StatusConnect, got.status)
	require.NotContains(t, got.stderr, "secret")
	require.Contains(t, got.stderr, "no broker there\nhint: ")
}

func TestManyMistakes(t *testing.T) {
	got := call(nil, "alpha", "client", "--num-destinations", "1000", "A", "A")
	require.Equal(t, result.StatusUsage, got.status)
	require.Equal(t, maxShown+1, strings.Count(got.stderr, "error: "))
	require.Contains(t, got.stderr, "\nerror: and 900 more\n")
}

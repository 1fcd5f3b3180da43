package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/result"
)

func TestHelp(t *testing.T) {
	for name, args := range map[string]string{
		"help.txt": "--help", "help-alpha.txt": "alpha --help", "help-alpha-client.txt": "alpha client --help",
		"help-alpha-producer.txt": "help alpha producer", "help-all-alpha-client.txt": "alpha client --help-all",
		"help-all-alpha-producer.txt": "alpha producer --help-all", "help-all-alpha-consumer.txt": "alpha consumer --help-all queue://Q", "help-run.txt": "run --help",
		"help-all-run.txt": "run --help-all", "help-load.txt": "alpha client --help=load", "help-options.txt": "alpha client --rate 5 --help=Options", "help-report.txt": "report --help", "help-alpha-consumer.txt": "alpha consumer -h", "help-beta-client.txt": "beta client --help",
		"help-version.txt": "version --help", "help-verify.txt": "verify --help", "help-broker.txt": "broker --help", "help-completion.txt": "completion --help",
	} {
		t.Run(name, func(t *testing.T) {
			got := call(nil, strings.Fields(args)...)
			require.Equal(t, 0, got.status)
			require.Empty(t, got.stderr)
			if !strings.Contains(name, "completion") { // cobra's own text
				requireFits(t, got.stdout)
			}
			golden(t, name, got.stdout)
		})
	}
}

func requireFits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
		require.Equal(t, strings.TrimRight(line, " "), line)
	}
}

// TestHelpFitsAScreen: the settings of daily use fit on a screen, each page of help in its width, and no protocol for
// tests is listed.
func TestHelpFitsAScreen(t *testing.T) {
	for _, f := range realApp().Factories {
		for _, role := range config.Roles() {
			text := realHelp(t, f.Name, string(role), "--help")
			require.LessOrEqual(t, strings.Count(text, "\n"), 55, role)
			requireFits(t, text)
			requireFits(t, realHelp(t, f.Name, string(role), "--help-all"))
			for _, flag := range []string{"find-max", "reconnect", "result", "web", "format"} {
				if flag != "find-max" && flag != "reconnect" || role.Produces() || flag == "reconnect" && role == plan.Consumer {
					require.Contains(t, text, "  --"+flag+" ", role)
				}
			}
		}
	}
	for _, command := range []string{"run", "broker", "verify", "merge", "compare", "report", "scenario", "scenario metrics", "version"} {
		requireFits(t, realHelp(t, append(strings.Fields(command), "--help")...))
	}
	require.NotContains(t, realHelp(t, "--help"), "mem ")
}

// TestHelpTopics: each topic is a part of --help-all. An unknown one is not shown, as it may be anything.
func TestHelpTopics(t *testing.T) {
	all := call(nil, "alpha", "client", "--help-all").stdout
	_, list, found := strings.Cut(call(nil, "alpha", "client", "--help").stdout, "\nTopics: --help=TOPIC\n")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n\n")
	names := strings.Fields(strings.ReplaceAll(list, ",", ""))
	require.Len(t, names, 14)
	for _, name := range names {
		got := call(nil, "alpha", "client", "--help="+name)
		require.Equal(t, result.StatusOK, got.status, name)
		require.Contains(t, all, "\n\n"+got.stdout, name)
	}
	for args, want := range map[string]string{
		"alpha client --help=lod":    "error: --help: no such topic; known are " + strings.Join(names, ", ") + "\nhint: did you mean --help=load?\n",
		"run --help=hunter2":         "error: --help: no such topic; known are " + strings.ReplaceAll(strings.Join(names, ", "), "options, ", "") + "\nhint: perfmq run --help=all prints all topics\n",
		"report --help=load":         "error: --help: no such topic; known are flags\nhint: topics are of perfmq run and of the loads: perfmq run --help lists them\n",
		"alpha client --=x":          "error: a flag without a name\nhint: perfmq alpha client --help lists all flags\n",
		"compare --unlike=x":         "error: --unlike takes no value\nhint: perfmq compare --help lists all flags\n",
		"alpha client --help-all=zz": "error: --help: no such topic; known are " + strings.Join(names, ", ") + "\nhint: perfmq alpha client --help=all prints all topics\n",
	} {
		require.Equal(t, ended{result.StatusUsage, "", want}, call(nil, strings.Fields(args)...), args)
	}
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version"} {
		got := call(nil, arg)
		require.Equal(t, ended{0, "perfmq v0.0.0\n", ""}, got)
	}
	v := run.NewVersion("v1.2.3")
	require.Equal(t, "v1.2.3", v.Number)
	require.Contains(t, v.String(), "go1.")
	require.Equal(t, "v1 abc (go)", run.Version{Number: "v1", Revision: "abc", Platform: "go"}.String())
}

func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{""}, "alpha\tLoad over Alpha 1.0\nbeta\tLoad over Beta\nbroker\tServe the embedded broker to other clients until Ctrl-C\ncompare\tCompare results, with a test for chance\ncompletion\tGenerate the autocompletion script for the specified shell\n" +
			"help\tHelp about any command\nmerge\tJoin the results of several load hosts into one\nreport\tMake a page with charts, or tables, of results\nrun\tRun a scenario file: several brokers, groups and steps\nscenario\tList and show scenarios, their schema, and metrics\n" +
			"verify\tFind lost, duplicated and damaged messages across processes\nversion\tPrint the version\n:4\n"},
		{[]string{"alpha", ""}, "client\tSend messages and receive them again\nconnections\tOpen connections\nconsumer\tReceive messages\nproducer\tSend messages\nrequester\tSend requests\nresponder\tAnswer requests\nservice\tSend requests and answer them\n:4\n"},
		{[]string{"alpha", "client", ""}, "queue://\ntopic://\n:6\n"},
		{[]string{"alpha", "client", "queue://A", "t"}, "topic://\n:6\n"},
		{[]string{"alpha", "client", "--url", ""}, "alpha://\nalphas://\n:6\n"},
		{[]string{"alpha", "client", "--consumer-url", "b"}, "beta://\n:6\n"},
		{[]string{"alpha", "client", "--consumer-protocol", ""}, "alpha\nbeta\nmem\n:4\n"},
		{[]string{"alpha", "client", "--protocol", ""}, "alpha\n:4\n"},
		{[]string{"alpha", "client", "--rate", ""}, ":4\n"},
		{[]string{"alpha", "client", "--json", ""}, ":0\n"},
		{[]string{"alpha", "client", "--result", ""}, ":16\n"},
		{[]string{"alpha", "client", "--format", ""}, "artemis\nrocketmq\nshort\n:4\n"},
		{[]string{"alpha", "client", "--fill", "z"}, "zeros\n:4\n"},
		{[]string{"broker", "--when-full", ""}, "block\nreject\n:4\n"},
		{[]string{"run", ""}, "yaml\nyml\n:8\n"},
		{[]string{"run", "@"}, ":4\n"},
		{[]string{"alpha", "consumer", "--rat"}, ":4\n"},
		{[]string{"alpha", "producer", "--rat"}, "--rate\tmessages per second of all producers, such as 30k or 0.5; or segments, such as 'ramp 0 to 5000 for 60s, pause 10s'\n:4\n"},
	} {
		got := call(nil, append([]string{"__complete"}, c.words...)...)
		require.Equal(t, 0, got.status, c.words)
		require.Equal(t, c.want, got.stdout, c.words)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := call(nil, "completion", shell)
		require.Equal(t, 0, got.status)
		require.Contains(t, got.stdout, "__complete")
	}
}

//go:build unix

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

// overlaid builds the program with edits of its code by an overlay, and returns a folder and the program in it. An edit is
// a file, a text that stands there once, and the text to add behind it.
func overlaid(t *testing.T, edits ...[3]string) (dir, program string) {
	t.Helper()
	dir = t.TempDir()
	replace, texts := map[string]string{}, map[string]string{}
	for _, edit := range edits {
		path := musttest.Get(filepath.Abs(filepath.Join("../..", edit[0])))(t)
		if texts[path] == "" {
			text := musttest.Get(os.ReadFile(path))(t)
			texts[path] = string(text)
		}
		require.Equal(t, 1, strings.Count(texts[path], edit[1]), edit[0])
		texts[path] = strings.Replace(texts[path], edit[1], edit[1]+edit[2], 1)
		replace[path] = filepath.Join(dir, strings.ReplaceAll(edit[0], "/", "-"))
		require.NoError(t, os.WriteFile(replace[path], []byte(texts[path]), 0o600))
	}
	overlay := musttest.Get(json.Marshal(map[string]any{"Replace": replace}))(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay"), overlay, 0o600))
	program = filepath.Join(dir, "perfmq")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay"), "-o", program, "./pkg/driver/drivertest/perfmq-mem")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return dir, program
}

// TestAdded: the needs of a new kind of finding, of latency, and of a new setting. One program has all: it is compiled
// for long.
func TestAdded(t *testing.T) {
	t.Parallel()
	dir, perfmq := overlaid(t,
		[3]string{"internal/words/kinds.go", "var kinds = []Kind{\n", `{"new", result.Note, "new things: %d"},` + "\n"},
		[3]string{"internal/engine/sampler.go", "func Observe(s *stats.Summary) {\n", `s.Find("new", "", 7, 7)` + "\n"},
		[3]string{"pkg/result/kinds.go", "	Service\n", "	Journey\n"},
		[3]string{
			"pkg/result/kinds.go", "to the sending of its reply.\",\n	},\n",
			`{Journey, ConsumerRole, false, false, 0, "journey", "journey", "journey time", false, "journey_seconds", "Of the journey."},` + "\n",
		},
		[3]string{
			"internal/stats/recorder_consumer.go", "p.record(result.Transfer, max(0, m.Transfer))\n",
			"p.record(result.Journey, 3*time.Second)\n",
		},
		[3]string{
			"pkg/driver/spec.go", "so the\n	// state per slot should grow as slots are used.\n",
			"	Sprinkle int `set:\"sprinkle\" roles:\"producer\" range:\"0..100\" default:\"0\" help:\"sprinkles on each message\"`\n",
		},
		[3]string{
			"internal/plan/validate.go", "	v.resend()\n",
			`v.refuse(g.Sprinkle > 50 && !g.Persistent, "add --persistent", "--sprinkle %d does not stay", g.Sprinkle)` + "\n",
		},
		[3]string{
			"pkg/driver/drivertest/mem/clients.go", "	p.dest = p.destination(spec.Destination)\n",
			`println("mem has sprinkle", spec.Sprinkle)` + "\n",
		},
	)
	t.Run("finding", func(t *testing.T) { testAddedFinding(t, dir, perfmq) })
	t.Run("latency", func(t *testing.T) { testAddedLatency(t, dir, perfmq) })
	t.Run("setting", func(t *testing.T) { testAddedSetting(t, dir, perfmq) })
}

// testAddedFinding: a new kind of finding is a row in internal/words and the line that finds it. Each output has it.
func testAddedFinding(t *testing.T, dir, perfmq string) {
	folder, jsonFile := filepath.Join(dir, "run"), filepath.Join(dir, "run.json")
	for _, format := range []string{"artemis", "short", "rocketmq"} {
		args := []string{"amqp", "client", "--embedded", "--message-count", "10", "--format", format, "queue://TEST"}
		if format == "artemis" {
			args = append(args, "--result", folder, "--json", jsonFile, "--metrics", "127.0.0.1:0", "--metrics-linger", "5m")
		}
		run := exec.CommandContext(t.Context(), perfmq, args...)
		var console strings.Builder
		var stderr lockedBuffer
		run.Stdout, run.Stderr = &console, &stderr
		require.NoError(t, run.Start())
		if format == "artemis" {
			awaitMetric(t, metricsOf(t, &stderr), `perfmq_run_findings{kind="new"[^}]*} 7\n`)
			endLinger(t, run, &stderr)
		}
		require.NoError(t, run.Wait())
		require.Regexp(t, `finding:? +new things: 7\n`, console.String())
	}
	const written = `{"kind":"new","count":7,"severity":"note","text":"new things: 7"}`
	for _, file := range []string{jsonFile, filepath.Join(folder, "result.json")} {
		text := musttest.Get(os.ReadFile(file))(t)
		require.Contains(t, strings.NewReplacer(" ", "", "\n", "").Replace(string(text)), strings.ReplaceAll(written, " ", ""))
	}
	page := musttest.Get(exec.CommandContext(t.Context(), perfmq, "report", "--format", "markdown", folder).Output())(t)
	require.Contains(t, string(page), "- new things: 7\n")
}

// awaitMetric waits until a scrape of the end of a run matches a pattern.
func awaitMetric(t *testing.T, url, pattern string) {
	t.Helper()
	eventually(t, pattern+" in the metrics", func() bool {
		resp, err := http.Get(url) //nolint:noctx // of this machine
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return regexp.MustCompile(pattern).Match(text) && regexp.MustCompile(`\nperfmq_run_success[^\n]* 1\n`).Match(text)
	})
}

// endLinger ends the serving of the final metrics.
func endLinger(t *testing.T, run *exec.Cmd, stderr *lockedBuffer) {
	t.Helper()
	eventually(t, "the end of the load", func() bool { return strings.Contains(stderr.String(), "serving the final metrics") })
	require.NoError(t, run.Process.Signal(os.Interrupt))
}

// metricsOf returns the URL of a run's metrics, from its error output.
func metricsOf(t *testing.T, stderr *lockedBuffer) (url string) {
	t.Helper()
	said := regexp.MustCompile(`note: metrics at (\S+)\n`)
	eventually(t, "the address of the metrics", func() bool {
		found := said.FindStringSubmatch(stderr.String())
		if found != nil {
			url = found[1]
		}
		return found != nil
	})
	return url
}

// testAddedLatency: a new kind of latency is a constant and a row in pkg/result, and the place where it is recorded. Each
// output, threshold, comparison and merge has it.
func testAddedLatency(t *testing.T, dir, perfmq string) {
	run := func(args ...string) string {
		said, err := exec.CommandContext(t.Context(), perfmq, args...).CombinedOutput()
		require.NoError(t, err, string(said))
		return string(said)
	}
	load := func(args ...string) []string {
		return slices.Concat([]string{
			"mem", "client", "--rate", "100", "--duration", "1s", "--verify", "--drain-timeout", "2s", "--producers", "2", "--consumers", "2",
			"--threshold", "journey.p99 < 4s",
		}, args)
	}
	hdr, jsonFile := filepath.Join(dir, "run.hdr"), filepath.Join(dir, "run.json")
	first := exec.CommandContext(t.Context(), perfmq, load("--result", filepath.Join(dir, "a", "1"), "--hdr", hdr, "--json", jsonFile,
		"--metrics", "127.0.0.1:0", "--metrics-linger", "5m")...)
	var console strings.Builder
	var stderr lockedBuffer
	first.Stdout, first.Stderr = &console, &stderr
	require.NoError(t, first.Start())
	awaitMetric(t, metricsOf(t, &stderr), `perfmq_journey_seconds_sum{[^}]*} [1-9]`)
	endLinger(t, first, &stderr)
	require.NoError(t, first.Wait())
	require.Regexp(t, `aggregated journey time: .* 99\.00%: +3\d\d\d\d\d\d\.00 us`, console.String())
	require.Regexp(t, `journey\.p99 < 4s: (kept|passed|passes), 3`, console.String())
	for file, want := range map[string]string{hdr: "Tag=journey,", jsonFile: `"journeyTime":`, filepath.Join(dir, "a", "1", "result.json"): `"journey":`} {
		text := musttest.Get(os.ReadFile(file))(t)
		require.True(t, strings.Contains(string(text), want), "%s has no %s", file, want)
	}
	require.Regexp(t, `\njourney +3\.00 s`, run(load("--result", filepath.Join(dir, "b", "1"), "--format", "short")...))
	compared := run("compare", "--metric", "journey.p99", filepath.Join(dir, "a"), filepath.Join(dir, "b"))
	require.Regexp(t, `journey\.p99 +3s`, compared)
	require.Regexp(t, `\| journey \| [0-9]+ \| 3,?000`, run("report", "--format", "markdown", filepath.Join(dir, "a", "1")))
	shard := func(number string) string {
		folder := filepath.Join(dir, "shard"+number)
		run(load("--shard", number+"/2", "--run-id", "journey", "--result", folder, "--silent")...)
		return folder
	}
	require.Regexp(t, `journey us: +mean 3000000`, run("merge", "--result", filepath.Join(dir, "both"), shard("1"), shard("2")))
}

// testAddedSetting: a setting that is added in three places (its row, its check and one driver) is a flag, a variable, a key
// of scenarios and of their schema, and is in help, --dry-run and result.
func testAddedSetting(t *testing.T, dir, perfmq string) {
	run := func(environ string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), perfmq, args...)
		cmd.Env = append(os.Environ(), environ)
		said, _ := cmd.CombinedOutput() // with the mistakes, if there are any
		return string(said)
	}
	folder := filepath.Join(dir, "sprinkled")
	file := scenarioFile(t, "broker: {protocol: mem}\ngroup: {role: client, sprinkle: 7, message-count: 3}\n")
	for name, c := range map[string]struct{ said, want string }{
		"flag":     {run("", "mem", "client", "--message-count", "3", "--sprinkle", "5", "--result", folder), "mem has sprinkle 5\n"},
		"variable": {run("PERFMQ_SPRINKLE=6", "mem", "client", "--message-count", "3"), "mem has sprinkle 6\n"},
		"key":      {run("", "run", file), "mem has sprinkle 7\n"},
		"over it":  {run("", "run", file, "--sprinkle", "8"), "mem has sprinkle 8\n"},
		"again":    {run("", "run", folder), "mem has sprinkle 5\n"},
		"dry run":  {run("", "mem", "client", "--sprinkle", "5", "--dry-run"), "\n  sprinkle: 5\n"},
		"schema":   {run("", "scenario", "schema"), `"sprinkle": {`},
		"help":     {run("", "mem", "producer", "--help-all"), "\n  --sprinkle N "},
		"range":    {run("", "mem", "client", "--sprinkle", "101"), "error: --sprinkle=101: must be a whole number from 0 to 100\n"},
		"check":    {run("PERFMQ_SPRINKLE=51", "mem", "client"), "error: --sprinkle 51 does not stay\nhint: add --persistent"},
		"role":     {run("", "mem", "consumer", "--sprinkle", "5"), "it is a flag of perfmq mem client, perfmq mem producer, perfmq mem requester and perfmq mem service\n"},
	} {
		require.Contains(t, c.said, c.want, name)
	}
	one := musttest.Get(runresult.Read(folder))(t)
	require.Contains(t, string(one.Plan), `"sprinkle": 5`)
}

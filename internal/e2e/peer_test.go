//go:build unix

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestSameOutputAsArtemisPerf runs both tools: one parser reads the output of both, and the keys of their JSON are in
// ours.
func TestSameOutputAsArtemisPerf(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	for name, c := range map[string]struct {
		args []string
		g    grammar
	}{
		"client":   {[]string{"--warmup", "1", "--rate", "200"}, grammar{producing: true, consuming: true, rated: true, showLatency: true}},
		"producer": {nil, grammar{producing: true, showLatency: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := newQueue(t, a)
			file := filepath.Join(t.TempDir(), "peer.json")
			args := append(c.args, "--duration", "3", "--show-latency")
			cmd := a.PerfCommand(soon(t), name, slices.Concat([]string{"--protocol", "AMQP", "--json", file}, args, []string{"queue://" + queue})...)
			out := output(t, cmd)
			r := run(t, limit, slices.Concat([]string{"amqp", name, "--url", a.AMQPURL()}, args, []string{"queue://" + queue})...)
			require.Equal(t, statusOK, r.status)

			c.g.peer = true
			theirs := readConsole(t, out, c.g)
			c.g.peer = false
			ours := readConsole(t, r.stdout, c.g)
			require.Equal(t, slices.Sorted(maps.Keys(theirs.totals)), slices.Sorted(maps.Keys(ours.totals)))
			require.Equal(t, theirs.result, ours.result)

			text := musttest.Get(os.ReadFile(file))(t)
			requireKeys(t, string(text), r.json)
		})
	}
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out := musttest.Get(cmd.Output())(t)
	return string(out)
}

// ownMean is the mean as a number, which our latencies have beside artemis perf's text.
const ownMean = "meanMicroseconds"

// requireKeys compares the keys of our JSON with artemis perf's: ours has all of them, and its latencies have the same
// keys with values of the same type, and the mean as a number.
func requireKeys(t *testing.T, theirs, ours string) {
	t.Helper()
	samples := func(text string) map[string]map[string]any {
		var all []map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &all), "%s", text)
		byType := map[string]map[string]any{}
		for _, sample := range all {
			byType[sample["sampleType"].(string)] = sample
		}
		return byType
	}
	want, got := samples(theirs), samples(ours)
	require.Equal(t, []string{"interval", "summary"}, slices.Sorted(maps.Keys(want)))
	for kind, sample := range want {
		for key, value := range sample {
			require.Contains(t, got[kind], key, "the keys of %s", kind)
			require.IsType(t, value, got[kind][key], "%s of %s", key, kind)
			if nested, is := value.(map[string]any); is {
				our := got[kind][key].(map[string]any)
				require.Equal(t, slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(nested)), ownMean))), slices.Sorted(maps.Keys(our)), "%s of %s", key, kind)
				for k, v := range nested {
					if our["count"] == 0.0 && our[k] == nil {
						continue // without values there is null, where theirs has zeros
					}
					require.IsType(t, v, our[k], "%s of %s of %s", k, key, kind)
				}
			}
		}
	}
}

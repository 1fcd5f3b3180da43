package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestFindNothing: if no rate passes a threshold, the status is 3, or 5 on a busy machine, and all rates tried are
// printed; a second search does not overwrite the first.
func TestFindNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "found")
	args := []string{
		"mem", "producer", "--find-max", "ack.p50 < 5ms", "-o", "latency=30ms", "--rate", "5", "--duration", "400ms", "--warmup", "0", "--result", dir, "queue://A",
	}
	r := call(nil, args...)
	require.Contains(t, []int{exitThreshold, exitUndecided}, r.status, r.stderr)
	assert.Contains(t, r.stdout, "--- FIND-MAX: the highest rate at which ack.p50 < 5ms, completed.avg >= 99% of target, delay.p99 < 100ms; a load may miss its target by 2 messages\n")
	assert.Regexp(t, `^error: (not even 1 msg/s passes the thresholds: ack.p50 < 5ms: |undecided: perfmq was the limit of )`, r.stderr)
	text := musttest.Get(os.ReadFile(filepath.Join(dir, record.SearchFile)))(t)
	var found record.Search
	require.NoError(t, json.Unmarshal(text, &found))
	assert.Zero(t, found.Rate)
	assert.GreaterOrEqual(t, len(found.Points), 2)
	assert.True(t, found.Complete)

	again := call(nil, args...)
	assert.Equal(t, exitUsage, again.status)
	assert.Contains(t, again.stderr, "the folder is not empty")
	kept := musttest.Get(os.ReadFile(filepath.Join(dir, record.SearchFile)))(t)
	assert.Equal(t, string(text), string(kept))
}

// TestScenarioSearch: a search in a file does what --find-max does, for one group; it is no sweep.
func TestScenarioSearch(t *testing.T) {
	t.Parallel()
	const text = `
name: searches
broker: {url: "mem://scenario-search", options: {latency: 30ms}}
find-max: [ack.p50 < 20ms]
groups:
  senders: {role: producer, destination: queue://A, max-pending: 1, rate: 4}
duration: 300ms
`
	file := write(t, "search.yaml", text)
	plan := call(nil, "run", file, "--dry-run")
	require.Equal(t, exitOK, plan.status, plan.stderr)
	require.Contains(t, plan.stdout, "# note: a search: each of its loads has another rate\n")
	dir := filepath.Join(t.TempDir(), "found")
	got := call(nil, "run", file, "--result", dir, "--json", filepath.Join(t.TempDir(), "found.json"))
	require.Contains(t, []int{exitThreshold, exitUndecided}, got.status, got.stderr) // perfmq may be the limit on a busy machine
	found := musttest.Get(record.ReadSearch(dir))(t)
	require.True(t, found.Complete)
	require.Equal(t, "ack.p50 < 20ms", found.Thresholds[0])
	require.Regexp(t, `(?m)^--- +4 msg/s: (fail|undecided) +ack.p50 [^;]*; limit: `, got.stdout)
	for i, p := range found.Points {
		_, err := result.Read(filepath.Join(dir, record.PointFolder(i+1, p.Rate)))
		require.NoError(t, err)
	}
	again := call(nil, "run", file, "--result", dir)
	require.Equal(t, exitUsage, again.status)
	require.Contains(t, again.stderr, "the folder is not empty")

	for add, want := range map[string]string{
		"repeats: 3": "--find-max is for one run, and there are several",
		"steps: [{name: one, duration: 1s}, {name: two, duration: 1s}]": "a search needs one step with a duration",
	} {
		body := text
		if strings.HasPrefix(add, "steps") {
			body = strings.Replace(text, "duration: 300ms\n", "", 1)
		}
		got := call(nil, "run", write(t, "search.yaml", body+add+"\n"))
		require.Equal(t, exitUsage, got.status, add)
		require.Contains(t, got.stderr, want, add)
	}
	got = call(nil, "run", file, "--hdr", "x.hdr")
	require.Contains(t, got.stderr, "--hdr is for one run, and there are several")
}

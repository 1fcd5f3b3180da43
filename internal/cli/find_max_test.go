package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/search"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
)

// TestFindNothing: if no rate keeps a demand, the status is 3 and all rates tried are printed; a second search does not
// overwrite the first.
func TestFindNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "found")
	args := []string{
		"mem", "producer", "--find-max", "ack.p50 < 5ms", "-o", "latency=30ms", "--rate", "5", "--duration", "400ms", "--warmup", "0", "--result", dir, "queue://A",
	}
	r := call(nil, args...)
	require.Equal(t, exitThreshold, r.status, r.stderr)
	assert.Contains(t, r.stdout, "--- FIND-MAX: the highest rate at which ack.p50 < 5ms, completed.avg >= 99% of target, delay.p99 < 100ms\n")
	assert.Regexp(t, `^error: not even 1 msg/s keeps the demands: ack.p50 < 5ms: `, r.stderr)
	text, err := os.ReadFile(filepath.Join(dir, search.File))
	require.NoError(t, err)
	var found search.Found
	require.NoError(t, json.Unmarshal(text, &found))
	assert.Zero(t, found.Rate)
	assert.GreaterOrEqual(t, len(found.Points), 2)

	again := call(nil, args...)
	assert.Equal(t, exitUsage, again.status)
	assert.Contains(t, again.stderr, "the folder is not empty")
	kept, err := os.ReadFile(filepath.Join(dir, search.File))
	require.NoError(t, err)
	assert.Equal(t, string(text), string(kept))
}

// TestJudgePoint: a load may miss its target by two messages in flight at its end. A broken demand is the reason, and a
// load that reached its rate names no limit.
func TestJudgePoint(t *testing.T) {
	demand := func(text string, measured, target float64, kept bool) threshold.Outcome {
		d, err := threshold.Parse(text)
		require.NoError(t, err)
		return threshold.Outcome{Threshold: d, Known: true, Measured: measured, Target: target, Kept: kept}
	}
	late := demand("ack.p99 < 5ms", 7000, 0, false)
	few := demand("received.avg >= 99% of target", 2.4, 2.5, false)
	behind := demand("received.avg >= 99% of target", 2400, 2500, false)
	none, machine := stats.Limit{Kind: stats.LimitNone, Text: "the rate was reached"}, stats.Limit{Kind: stats.LimitMachine, Text: "others"}
	for name, c := range map[string]struct {
		summary stats.Summary
		want    search.Point
	}{
		"kept":        {stats.Summary{Success: true, Limit: none, Thresholds: []threshold.Outcome{few}}, search.Point{Kept: true}},
		"late":        {stats.Summary{Success: true, Limit: none, Thresholds: []threshold.Outcome{late}}, search.Point{Why: "ack.p99 < 5ms: 7ms"}},
		"behind":      {stats.Summary{Success: true, Limit: none, Thresholds: []threshold.Outcome{behind}}, search.Point{Why: "received.avg >= 99% of target: 2400/s (96%)"}},
		"failed":      {stats.Summary{Problems: []string{"lost"}, Limit: none}, search.Point{Why: "lost"}},
		"the machine": {stats.Summary{Success: true, Limit: machine, Thresholds: []threshold.Outcome{late}}, search.Point{Why: "ack.p99 < 5ms: 7ms", Tester: true, Limit: "the machine (others)"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, judgePoint(&c.summary, 5*time.Second)) })
	}
}

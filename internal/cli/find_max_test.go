package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/search"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
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
	text, err := os.ReadFile(filepath.Join(dir, search.File))
	require.NoError(t, err)
	var found search.Found
	require.NoError(t, json.Unmarshal(text, &found))
	assert.Zero(t, found.Rate)
	assert.GreaterOrEqual(t, len(found.Points), 2)
	assert.True(t, found.Complete)

	again := call(nil, args...)
	assert.Equal(t, exitUsage, again.status)
	assert.Contains(t, again.stderr, "the folder is not empty")
	kept, err := os.ReadFile(filepath.Join(dir, search.File))
	require.NoError(t, err)
	assert.Equal(t, string(text), string(kept))
}

// TestFindMaxVerdicts: of each load the search says what the load's own result says, also where the target was missed by
// no more than the messages at the borders of the measured time.
func TestFindMaxVerdicts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "found")
	r := call(nil, "mem", "producer", "--find-max", "ack.p50 < 5s", "-o", "latency=40ms", "--max-pending", "1", "--rate", "20", "--duration", "400ms",
		"--warmup", "0", "--result", dir, "queue://A")
	text, err := os.ReadFile(filepath.Join(dir, search.File))
	require.NoError(t, err, r.stderr)
	var found search.Found
	require.NoError(t, json.Unmarshal(text, &found))
	require.NotEmpty(t, found.Points)
	for i, p := range found.Points {
		one, err := result.Read(filepath.Join(dir, search.Folder(i+1, p.Rate)))
		require.NoError(t, err)
		broken := slices.ContainsFunc(one.Thresholds, func(x result.Threshold) bool { return !x.Kept })
		require.Equal(t, p.Kept, one.Outcome.Success && !broken, "%v: %v", p, one.Thresholds)
	}
}

// TestShareOf: a load may miss its target by two messages, if these are more than 1%.
func TestShareOf(t *testing.T) {
	for messages, want := range map[float64]float64{0: 0, 1: 0, 2: 0, 4: 50, 136.8: 98.53, 199: 98.99, 200: 99, 201: 99, 1e6: 99} {
		assert.InDelta(t, want, shareOf(messages), 1e-9, messages)
	}
	f := maxFinder{measured: 2 * time.Second}
	asked, err := threshold.Parse("received.avg >= 99% of target")
	require.NoError(t, err)
	f.demands = []threshold.Threshold{asked}
	require.NoError(t, f.queueing(true))
	for hold, want := range map[bool]string{false: "95%", true: "98.33%"} {
		list, err := f.demandsOf(20, hold)
		require.NoError(t, err)
		var texts []string
		for i := range list {
			texts = append(texts, list[i].String())
		}
		assert.Equal(t, []string{
			"received.avg >= 99% of target", "completed.avg >= " + want + " of target", "delay.p99 < 100ms", "received.avg >= " + want + " of target",
		}, texts, "what was asked for stays")
	}
}

// TestTargetOf: the share is one of all groups of a scenario, and not of that alone whose rate is searched for.
func TestTargetOf(t *testing.T) {
	group := func(role plan.Role, rate string) *plan.Group {
		s, err := load.ParseSchedule(rate)
		require.NoError(t, err)
		return &plan.Group{Role: role, Rate: plan.Rate{Schedule: s}}
	}
	step := plan.Step{Duration: 2 * time.Second, Groups: []*plan.Group{
		group(plan.Producer, "5"), group(plan.Client, "100 for 1s, 300 for 1s"), {Role: plan.Consumer},
	}}
	assert.InDelta(t, 205, targetOf(&step), 0.1)
}

// TestJudgePoint: a broken demand is the reason, then the problems of the load; and a load that reached its rate names no
// limit.
func TestJudgePoint(t *testing.T) {
	demand := func(text string, measured, target float64, kept bool) threshold.Outcome {
		d, err := threshold.Parse(text)
		require.NoError(t, err)
		return threshold.Outcome{Threshold: d, Known: true, Measured: measured, Target: target, Kept: kept}
	}
	late := demand("ack.p99 < 5ms", 7000, 0, false)
	few := demand("received.avg >= 80% of target", 2.4, 2.5, true)
	behind := demand("received.avg >= 99% of target", 2400, 2500, false)
	none, machine := stats.Limit{Kind: stats.LimitNone, Text: "the rate was reached"}, stats.Limit{Kind: stats.LimitMachine, Text: "others"}
	for name, c := range map[string]struct {
		summary stats.Summary
		want    search.Point
	}{
		"kept":   {stats.Summary{Success: true, Limit: none, Thresholds: []threshold.Outcome{few}}, search.Point{Kept: true}},
		"late":   {stats.Summary{Success: true, Limit: none, Thresholds: []threshold.Outcome{late}}, search.Point{Why: "ack.p99 < 5ms: 7ms"}},
		"behind": {stats.Summary{Success: true, Limit: none, Thresholds: []threshold.Outcome{behind}}, search.Point{Why: "received.avg >= 99% of target: 2400/s (96%)"}},
		"failed": {stats.Summary{Problems: []string{"lost"}, Limit: none}, search.Point{Why: "lost"}},
		"late and failed": {
			stats.Summary{Problems: []string{"lost"}, Limit: none, Thresholds: []threshold.Outcome{late}},
			search.Point{Why: "ack.p99 < 5ms: 7ms, lost"},
		},
		"the machine": {stats.Summary{Success: true, Limit: machine, Thresholds: []threshold.Outcome{late}}, search.Point{Why: "ack.p99 < 5ms: 7ms", Tester: true, Limit: "the machine (others)"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, judgePoint(&c.summary)) })
	}
}

// TestScenarioSearch: a search in a file does what --find-max does, for one group; it is no sweep.
func TestScenarioSearch(t *testing.T) {
	t.Parallel()
	const text = `
name: searches
broker: {url: "mem://scenario-search", options: {latency: 30ms}}
search: {from: 4, thresholds: [ack.p50 < 20ms]}
groups:
  senders: {role: producer, destination: queue://A, max-pending: 1}
duration: 300ms
`
	file := write(t, "search.yaml", text)
	plan := call(nil, "run", file, "--dry-run")
	require.Equal(t, exitOK, plan.status, plan.stderr)
	require.Contains(t, plan.stdout, "A search: each of its loads has another rate\n")
	dir := filepath.Join(t.TempDir(), "found")
	got := call(nil, "run", file, "--result", dir, "--json", filepath.Join(t.TempDir(), "found.json"))
	require.Contains(t, []int{exitThreshold, exitUndecided}, got.status, got.stderr) // perfmq may be the limit on a busy machine
	found, err := search.Read(dir)
	require.NoError(t, err)
	require.True(t, found.Complete)
	require.Equal(t, "ack.p50 < 20ms", found.Demands[0])
	require.Regexp(t, `(?m)^--- +4 msg/s: (fail|undecided) +ack.p50 [^;]*; limit: `, got.stdout)
	for i, p := range found.Points {
		_, err := result.Read(filepath.Join(dir, search.Folder(i+1, p.Rate)))
		require.NoError(t, err)
	}
	again := call(nil, "run", file, "--result", dir)
	require.Equal(t, exitUsage, again.status)
	require.Contains(t, again.stderr, "the folder is not empty")

	for add, want := range map[string]string{
		"matrix: {options.latency: [1ms, 30ms]}": "a search does not go with a matrix",
		"repeats: 3":                             "repeats is of a sweep, and does not go with a search",
		"between-runs: purge":                    "between-runs is of a sweep, and does not go with a search",
		"steps: [{name: one, duration: 1s}, {name: two, duration: 1s}]": "a search wants one step with a duration",
		"knee: x": "leave it out: the table of the sweep and perfmq report have the rates over each axis",
	} {
		body := text
		if strings.HasPrefix(add, "steps") {
			body = strings.Replace(text, "duration: 300ms\n", "", 1)
		}
		got := call(nil, "run", write(t, "search.yaml", body+add+"\n"))
		require.Equal(t, exitUsage, got.status, add)
		require.Contains(t, got.stderr, want, add)
	}
	for _, flags := range [][]string{{"--repeats", "2"}, {"--seed", "1"}, {"--changed"}} {
		got := call(nil, append([]string{"run", file}, flags...)...)
		require.Equal(t, exitUsage, got.status, flags)
		require.Contains(t, got.stderr, "is a search: --repeats, --seed and --changed are for sweeps")
	}
	got = call(nil, "run", file, "--hdr", "x.hdr")
	require.Contains(t, got.stderr, "--hdr does not work with the several runs of a search")
}

// TestConclude: a search of which perfmq was the limit is undecided, with a status of its own.
func TestConclude(t *testing.T) {
	t.Parallel()
	tester := search.Point{Rate: 1000, Tester: true, Limit: "the machine (others took 90%)"}
	slow := search.Point{Rate: 1000, Why: "ack.p99 < 5ms: 7ms"}
	for name, c := range map[string]struct {
		found          search.Found
		err            error
		status         int
		stdout, stderr string
	}{
		"maximum": {search.Found{Rate: 900, Above: 1000, Held: true, Failed: slow, Complete: true}, nil, exitOK, "--- maximum: 900 msg/s; at 1,000 msg/s: ack.p99 < 5ms: 7ms\n", ""},
		"bound":   {search.Found{Rate: 900, Above: 1000, Held: true, Failed: tester, Complete: true}, nil, exitOK, "--- at least 900 msg/s: at 1,000 msg/s the limit was the machine (others took 90%)\n", ""},
		"nothing": {search.Found{Above: 1000, Failed: slow, Complete: true}, search.ErrNothing, exitThreshold, "", "error: not even 1,000 msg/s passes the thresholds: ack.p99 < 5ms: 7ms\n"},
		"undecided": {
			search.Found{Above: 1000, Failed: tester, Complete: true, Points: []search.Point{tester, tester}},
			search.ErrUndecided, exitUndecided, "",
			"error: undecided: perfmq was the limit of 2 of 2 loads, and no rate was held: at 1,000 msg/s the limit was the machine (others took 90%)\n" +
				"hint: search on an idle machine, or begin with a lower --rate\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			secrets := new(safetext.Secrets)
			f := maxFinder{a: &app{Env: Env{Stdout: &out}, secrets: secrets, errors: newErrorPrinter(&errs, secrets)}}
			require.Equal(t, c.status, f.conclude(&c.found, c.err))
			require.Equal(t, []string{c.stdout, c.stderr}, []string{out.String(), errs.String()})
		})
	}
}

package sweep

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

type probe func(rate float64, hold bool) (record.Point, error)

// capacity is a probe of a broker that takes so many messages a second.
func capacity(n float64) probe {
	return func(rate float64, _ bool) (record.Point, error) {
		return record.Point{Kept: rate <= n, Why: "too much"}, nil
	}
}

// quietly searches without notes of the loads.
func quietly(first float64, probe probe) (*record.Search, error) {
	found := &record.Search{}
	return found, (&finder{first: first, probe: probe, note: func(*record.Search) error { return nil }, Search: found}).highest()
}

// TestMax: the search finds any capacity to 2%, in few points.
func TestMax(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // must be repeatable
	for range 300 {
		n := 2 * float64(uint64(1)<<random.IntN(24)) * (1 + random.Float64())
		for _, first := range []float64{0, 1, 37, 1e6} {
			f := musttest.Get(quietly(first, capacity(n)))(t)
			require.LessOrEqual(t, f.Rate, n)
			require.Greater(t, f.Above, n)
			require.LessOrEqual(t, f.Above/f.Rate, 1.02+1e-9)
			require.True(t, f.Held)
			require.Equal(t, record.Point{Rate: f.Above, Why: "too much"}, f.Failed)
			require.LessOrEqual(t, len(f.Points), 41)
		}
	}
}

func TestEnds(t *testing.T) {
	f, err := quietly(0, capacity(0.5))
	require.ErrorIs(t, err, errNothing)
	assert.Zero(t, f.Rate)
	assert.InDelta(t, 1, f.Above, 0)

	f = musttest.Get(quietly(0, capacity(1e9)))(t)
	assert.InDelta(t, 1e8, f.Rate, 0)
	assert.Zero(t, f.Above)
	assert.True(t, f.Held)

	gone := errors.New("gone")
	n := 0
	f, err = quietly(0, func(_ float64, _ bool) (record.Point, error) {
		if n++; n > 3 {
			return record.Point{}, gone
		}
		return record.Point{Kept: true}, nil
	})
	require.ErrorIs(t, err, gone)
	assert.InDelta(t, 4000, f.Rate, 0)
	assert.False(t, f.Held)
	assert.Len(t, f.Points, 3, "what was found is not lost")
}

// TestChance: a load that failed once by chance does not hide the rates above it.
func TestChance(t *testing.T) {
	for bad := range 13 {
		n := 0
		f, err := quietly(0, func(rate float64, hold bool) (record.Point, error) {
			if !hold {
				n++
			}
			return record.Point{Kept: rate <= 5000 && (hold || n != bad), Why: "too much"}, nil
		})
		require.NoError(t, err)
		require.True(t, f.Held)
		require.InEpsilon(t, 5000, f.Rate, 0.02, "load %d: %v", bad, f.Points)
		require.Greater(t, f.Above, 5000.0)
		require.Equal(t, f.Above, f.Failed.Rate)
	}
}

// TestHold: a rate that passes for a moment, and fails when it is held, is not the result.
func TestHold(t *testing.T) {
	f, err := quietly(0, func(rate float64, hold bool) (record.Point, error) {
		return record.Point{Kept: rate <= 5000 || rate <= 5200 && !hold}, nil
	})
	require.NoError(t, err)
	assert.True(t, f.Held)
	assert.GreaterOrEqual(t, f.Rate, 0.9*5000)
	assert.LessOrEqual(t, f.Rate, 5000.0)

	f = musttest.Get(quietly(0, func(_ float64, hold bool) (record.Point, error) { return record.Point{Kept: !hold}, nil }))(t)
	assert.False(t, f.Held)
}

// TestUndecided: after two loads in a row with perfmq as the limit, only the rate that passed is held.
func TestUndecided(t *testing.T) {
	for _, c := range []struct {
		// by number of the load, the rate and whether it is held: passes, perfmq is the limit
		probe func(n int, rate float64, hold bool) (passes, perfmq bool)
		err   error
		kind  string
		loads int // 0 for any number
	}{
		{func(int, float64, bool) (bool, bool) { return false, true }, errUndecided, record.Undecided, 2},
		{func(_ int, rate float64, _ bool) (bool, bool) { return rate <= 5000, rate > 5000 }, nil, record.AtLeast, 6},
		{func(_ int, rate float64, _ bool) (bool, bool) { return false, rate < 900 }, errUndecided, record.Undecided, 3},
		{func(_ int, rate float64, hold bool) (bool, bool) { return rate <= 1000 && !hold, hold }, errUndecided, record.Undecided, 0},
		{func(n int, rate float64, _ bool) (bool, bool) { return n%2 == 0 && rate <= 5000, n%2 == 1 }, nil, record.Maximum, 0},
	} {
		n := 0
		f, err := quietly(0, func(rate float64, hold bool) (record.Point, error) {
			n++
			passes, perfmq := c.probe(n, rate, hold)
			return record.Point{Kept: passes, Tester: perfmq && !passes}, nil
		})
		require.ErrorIs(t, err, c.err)
		require.True(t, f.Complete)
		require.Equal(t, c.kind, f.Kind(), f)
		if c.loads > 0 {
			require.Len(t, f.Points, c.loads)
		}
		bounded := 0
		for i, p := range f.Points {
			if bounded++; !p.Tester {
				bounded = 0
			}
			require.True(t, bounded < 2 || i == len(f.Points)-1 || f.Points[i+1].Hold, "it continues: %v", f.Points)
		}
	}
}

// shown records the output.
type shown struct{ printed, failed []string }

func (s *shown) progress() Progress {
	return Progress{
		Print: func(line string) { s.printed = append(s.printed, line) },
		Fail:  func(err error) { s.failed = append(s.failed, err.Error()) },
	}
}

// TestThresholdsOf: a load may miss the target of all groups by two messages if these are more than 1%. Given thresholds do
// not change.
func TestThresholdsOf(t *testing.T) {
	for messages, want := range map[float64]float64{0: 0, 1: 0, 2: 0, 4: 50, 136.8: 98.53, 199: 98.99, 200: 99, 201: 99, 1e6: 99} {
		assert.InDelta(t, want, shareOf(messages), 1e-9, messages)
	}
	group := func(role plan.Role, rate string) *plan.Group {
		s := musttest.Get(load.ParseSchedule(rate))(t)
		return &plan.Group{Role: role, Rate: plan.Rate{Schedule: s}}
	}
	asked := musttest.Get(threshold.Parse("received.avg >= 99% of target"))(t)
	for _, c := range []struct {
		duration time.Duration
		want     string
		groups   []*plan.Group
	}{
		{3 * time.Second, "95%", []*plan.Group{group(plan.Client, "20")}},
		{7 * time.Second, "98.33%", []*plan.Group{group(plan.Client, "20")}},
		{3 * time.Second, "97.5%", []*plan.Group{group(plan.Client, "10 for 1s, 60 for 1s, 20 for 1s"), group(plan.Producer, "10"), {Role: plan.Consumer}}},
	} {
		step := plan.Step{Duration: c.duration, Warmup: time.Second, Groups: c.groups}
		s := Search{First: &run.Run{Plan: &plan.Plan{Steps: []plan.Step{step}}}, asked: []threshold.Threshold{asked}}
		var texts []string
		list := s.thresholdsOf(&step)
		for i := range list {
			texts = append(texts, list[i].String())
		}
		assert.Equal(t, []string{
			"received.avg >= 99% of target", "completed.avg >= " + c.want + " of target", "delay.p99 < 100ms", "received.avg >= " + c.want + " of target",
		}, texts)
	}
}

// TestJudge: failed thresholds are the reason, then the problems of the load. A load that reached its rate has no limit.
func TestJudge(t *testing.T) {
	outcome := func(text string, measured, target float64) result.Threshold {
		d := musttest.Get(threshold.Parse(text))(t)
		return d.Judge(measured, target)
	}
	late := outcome("ack.p99 < 5ms", 7000, 0)
	few := outcome("received.avg >= 80% of target", 2.4, 2.5)
	behind := outcome("received.avg >= 99% of target", 2400, 2500)
	kept := result.Outcome{Success: true}
	none, machine := &result.Limit{Kind: result.LimitNone, Text: "the rate was reached"}, &result.Limit{Kind: result.LimitMachine, Text: "others"}
	for name, c := range map[string]struct {
		summary stats.Summary
		want    record.Point
	}{
		"kept":   {stats.Summary{Result: result.Result{Outcome: kept, Limit: none, Thresholds: []result.Threshold{few}}}, record.Point{Kept: true}},
		"late":   {stats.Summary{Result: result.Result{Outcome: kept, Limit: none, Thresholds: []result.Threshold{late}}}, record.Point{Why: "ack.p99 < 5ms: 7ms"}},
		"behind": {stats.Summary{Result: result.Result{Outcome: kept, Limit: none, Thresholds: []result.Threshold{behind}}}, record.Point{Why: "received.avg >= 99% of target: 2400/s (96%)"}},
		"failed": {stats.Summary{Result: result.Result{Findings: []result.Finding{{Severity: result.Problem, Text: "lost"}}, Limit: none}}, record.Point{Why: "lost"}},
		"late and failed": {
			stats.Summary{Result: result.Result{Findings: []result.Finding{{Severity: result.Problem, Text: "lost"}}, Limit: none, Thresholds: []result.Threshold{late}}},
			record.Point{Why: "ack.p99 < 5ms: 7ms, lost"},
		},
		"the machine": {stats.Summary{Result: result.Result{Outcome: kept, Limit: machine, Thresholds: []result.Threshold{late}}}, record.Point{Why: "ack.p99 < 5ms: 7ms", Tester: true, Limit: "the machine (others)"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, judge(&c.summary)) })
	}
}

// TestConclude: each outcome of a search has its exit status; with perfmq as the limit it is undecided.
func TestConclude(t *testing.T) {
	t.Parallel()
	tester := record.Point{Rate: 1000, Tester: true, Limit: "the machine (others took 90%)"}
	slow := record.Point{Rate: 1000, Why: "ack.p99 < 5ms: 7ms"}
	for name, c := range map[string]struct {
		found           record.Search
		err             error
		status          int
		printed, failed string
	}{
		"maximum": {record.Search{Rate: 900, Above: 1000, Held: true, Failed: slow}, nil, result.StatusOK, "--- maximum: 900 msg/s", ""},
		"bound":   {record.Search{Rate: 900, Above: 1000, Held: true, Failed: tester}, nil, result.StatusOK, "--- at least 900 msg/s: ", ""},
		"nothing": {record.Search{Above: 1000, Failed: slow}, errNothing, result.StatusThreshold, "", "not even 1,000 msg/s passes"},
		"undecided": {
			record.Search{Above: 1000, Failed: tester, Points: []record.Point{tester, tester}}, errUndecided, result.StatusUndecided, "", "undecided: perfmq was the limit of 2 of 2 loads",
		},
	} {
		shown := new(shown)
		c.found.Complete = true
		require.Equal(t, c.status, (&Search{Progress: shown.progress()}).conclude(&c.found, c.err), name)
		require.Equal(t, []bool{c.printed == "", c.failed == ""}, []bool{shown.printed == nil, shown.failed == nil}, name)
		require.Contains(t, strings.Join(shown.printed, ""), c.printed)
		require.Contains(t, strings.Join(shown.failed, ""), c.failed)
	}
}

// TestHashCell: the embedded broker and its faults are in the hash of a cell.
func TestHashCell(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range []plan.Plan{{}, {Embedded: true}, {Embedded: true, Faults: "rate=5"}} {
		r := run.Run{Plan: &of, Secrets: new(safetext.Secrets)}
		var b strings.Builder
		require.NoError(t, hashCell(&b, nil, &r))
		seen[b.String()] = true
	}
	require.Len(t, seen, 3)
}

// twoCells returns a sweep of two cells, twice.
func twoCells(shown *shown) *Sweep {
	s := &Sweep{
		Axes: []record.Axis{{Name: "threads", Values: []string{"1", "16"}}}, Cells: []map[string]string{{"threads": "1"}, {"threads": "16"}},
		Repeats: 2, Settle: 2 * time.Second, Progress: shown.progress(),
	}
	s.Progress.Say = s.Progress.Print
	s.state = &record.Sweep{Name: "threads", Axes: s.Axes, Repeats: 2}
	s.state.Arrange(s.Cells)
	return s
}

// TestSayRun: a line names each run before it begins.
func TestSayRun(t *testing.T) {
	t.Parallel()
	shown := new(shown)
	s := twoCells(shown)
	s.sayRun(&s.state.Runs[3])
	s.Repeats = 1
	s.sayRun(&s.state.Runs[0])
	require.Equal(t, []string{"note: cell 2 of 2, repeat 2 of 2: threads=16", "note: cell 1 of 2: threads=1"}, shown.printed)
}

// TestTable: the medians of each cell stand in tables of 80 columns.
func TestTable(t *testing.T) {
	t.Parallel()
	shown := new(shown)
	s := twoCells(shown)
	for i := range s.state.Runs {
		r := &s.state.Runs[i]
		rate := 1000 * float64(i+1)
		r.State, r.Figures = record.Done, map[string]float64{
			"completed.avg": rate, "received.avg": rate, "ack.p50": 100 * rate, "ack.p99": 200 * rate, "response.p99": 300 * rate, "transfer.p99": 40,
		}
	}
	s.state.Runs[1].SetLimits([]record.Limit{{Kind: result.LimitWorker}})
	require.Equal(t, result.StatusOK, s.conclude(result.StatusOK))
	require.Equal(t, strings.Split(`
--- SWEEP threads: medians of the repeats, with the farthest repeat
perfmq was the limit of 1 of 4 runs, so their rates are lower bounds
threads          runs   completed.avg    received.avg      ack.p50      ack.p99
1                   2     2000/s ±50%     2000/s ±50%  200 ms ±50%  400 ms ±50%
16       2, 1 bounded  >= 3000/s ±33%  >= 3000/s ±33%  300 ms ±33%  600 ms ±33%

threads  response.p99  transfer.p99
1         600 ms ±50%     40 µs ±0%
16        900 ms ±33%     40 µs ±0%`, "\n"), shown.printed)
}

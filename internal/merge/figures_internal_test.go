package merge

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

const second = 1_000_000

func shardsOf(t *testing.T, plan string) *shards {
	t.Helper()
	s := &shards{merged: &result.Result{}}
	require.NoError(t, json.Unmarshal([]byte(plan), &s.plan))
	return s
}

// A stall belongs to the step in which it began. The groups of a stall without a group are unknown.
func TestStallsOfParts(t *testing.T) {
	s := shardsOf(t, `{"stall-threshold": "1s"}`)
	s.merged.Stalls = []result.Stall{
		{Time: 1, Length: 2, Group: "a"}, {Time: 3, Length: 2, Group: "b"}, {Time: 5000, Length: 9},
	}
	require.Len(t, s.stalls(0, 9000, ""), 3)
	require.Len(t, s.stalls(2, 1000, ""), 1)
	require.Equal(t, s.merged.Stalls[:1], s.stalls(0, 1000, "a"))
	require.NotNil(t, s.stalls(0, 1000, "c"), "it has none")
	require.Nil(t, s.stalls(0, 9000, "a"))
	s.merged.MoreStalls = 3
	require.Nil(t, s.stalls(0, 9000, ""), "unlisted stalls may overlap, or be longer")
}

// A group has metrics over the steps that have it, if the results have its measured counts.
func TestGroupOfSteps(t *testing.T) {
	counts := func(n uint64) result.Counts { return result.Counts{Producers: &result.Producers{Sent: n}} }
	group := func(name string, n uint64) result.Group {
		return result.Group{Name: name, Counts: counts(n), Measured: counts(n - 1)}
	}
	s := shardsOf(t, `{"steps": [
		{"name": "both", "groups": [{"name": "a", "producers": 1}, {"name": "b", "producers": 1}]},
		{"name": "one", "groups": [{"name": "b", "producers": 1}]},
		{"name": "unseen", "groups": [{"name": "c", "producers": 1}, {"name": "d", "producers": 1}]},
		{"name": "last", "groups": [{"name": "i", "producers": 1}, {"name": "b", "producers": 1}]}]}`)
	s.merged.Steps = []result.Step{
		{Name: "both", Groups: []result.Group{group("a", 10), group("b", 20)}},
		{Name: "one", Counts: counts(600), Measured: new(counts(500))},
		{Name: "last", Groups: []result.Group{group("i", 7), group("b", 30)}},
	}
	s.parts, s.starts = []*result.Result{{}}, []int64{0}
	all, last := s.plan.Steps, s.plan.Steps[3:]
	for _, c := range []struct {
		steps []plannedStep
		group string
		sent  float64 // after the warm-up; -1 if unknown
	}{{all, "a", 9}, {all, "b", 548}, {last, "b", 29}, {last, "i", 6}, {all, "i", 6}, {all, "c", -1}} {
		sent, known := s.metrics(c.steps, c.group)["sent"]
		require.Equal(t, c.sent >= 0, known, c)
		require.InDelta(t, max(0, c.sent), sent, 0, c)
	}
	require.Nil(t, s.metrics(s.plan.Steps[2:3], ""), "the step did not begin")
	require.InDelta(t, 500, s.metrics(all[1:2], "")["sent"], 0)
	s.merged.Steps[1].Measured = nil // of an earlier build, or with a killed part
	require.InDelta(t, 600, s.metrics(all[1:2], "")["sent"], 0, "all messages were due in the measured part")
	all[0].Warmup, all[1].Warmup = "1s", "1s"
	require.Nil(t, s.metrics(all, "b"), "the messages due in the warm-up of a step are unknown")
	require.NotContains(t, s.metrics(all[1:2], ""), "sent")
	s.parts[0].Steps = []result.Step{{Name: "both"}} // of a killed part, without groups
	require.NotContains(t, s.metrics(all[:1], ""), "sent")
	require.Nil(t, s.metrics(all[:1], "a"), "one part's number is not that of all")
}

// The lowest and highest rates are of the seconds in which all hosts measured, also if these began between two seconds.
func TestSecondsOfHosts(t *testing.T) {
	part := func(completed ...uint64) *result.Result {
		r := &result.Result{}
		for i, n := range completed {
			phase := result.Measure
			if i == 0 {
				phase = result.Warmup
			}
			r.Rows = append(r.Rows, result.Row{
				Step: "load", Phase: phase, Elapsed: int64(i+1) * second, Length: second,
				Counts: result.Counts{Producers: &result.Producers{Completed: n}, Consumers: &result.Consumers{Received: n}},
			})
		}
		return r
	}
	both := shardsOf(t, `{"steps": [{"name": "load", "duration": "5s", "groups": [{"producers": 1, "consumers": 1}]}]}`)
	readers := shardsOf(t, `{"steps": [{"name": "load", "duration": "5s", "groups": [{"consumers": 1}]}]}`)
	peaks := func(s *shards, later int64, parts ...*result.Result) map[string]float64 {
		s.parts, s.starts = parts, []int64{7 * second, 7*second + later}
		f := (&result.Result{Figures: s.figures(s.plan.Steps, "")}).Metrics()
		maps.DeleteFunc(f, func(name string, _ float64) bool { return strings.HasSuffix(name, ".avg") })
		return f
	}
	all := func(low, high float64) map[string]float64 {
		return map[string]float64{"completed.min": low, "completed.max": high, "received.min": low, "received.max": high}
	}
	usual, even := part(5, 100, 10, 100, 130), part(1, 100, 100, 100, 100)
	require.Equal(t, all(20, 260), peaks(both, 0, usual, usual))
	require.Equal(t, all(160, 160), peaks(both, 400_000, part(100, 100, 100, 100, 100), part(60, 60, 60, 60, 60)))
	require.Empty(t, peaks(both, 2*second, even, even), "two common seconds are too few")
	require.Empty(t, peaks(both, 0, part(), even))
	require.Equal(t, map[string]float64{"received.min": 200, "received.max": 200}, peaks(readers, 0, even, even), "nothing was sent")

	early, late := part(0, 100, 0, 100, 100, 100, 100), part(0, 0, 0, 100, 100, 100)
	late.Rows = late.Rows[1:] // it begins two seconds later, without a warm-up
	early.Rows = early.Rows[1:]
	both.plan.Steps[0].Duration = ""
	require.InDelta(t, 0, peaks(both, second, early, late)["received.min"], 0, "the first part received before")
}

// Rows list eight groups by name. The rates of the ninth are unknown, unless it is all of its steps.
func TestGroupBeyondEighth(t *testing.T) {
	groups := strings.Repeat(`{"name": "-", "producers": 1}, `, 9)
	for _, name := range strings.Split("abcdefghi", "") {
		groups = strings.Replace(groups, "-", name, 1)
	}
	s := shardsOf(t, `{"steps": [
		{"name": "all", "duration": "5s", "groups": [`+strings.TrimSuffix(groups, ", ")+`]},
		{"name": "alone", "duration": "5s", "groups": [{"name": "i", "producers": 1}]}]}`)
	r := &result.Result{}
	for i := range 10 {
		row := result.Row{
			Step: "all", Phase: result.Measure, Elapsed: int64(i+1) * second, Length: second,
			Counts: result.Counts{Producers: &result.Producers{Completed: 9}},
		}
		if i >= 5 {
			row.Step = "alone"
		} else {
			row.Groups = []result.RowGroup{{Name: "a", Counts: row.Counts}, {Name: result.OtherGroups, Counts: row.Counts}}
		}
		r.Rows = append(r.Rows, row)
	}
	s.parts, s.starts = []*result.Result{r}, []int64{0}
	all := s.plan.Steps
	require.Empty(t, (&result.Result{Figures: s.figures(all[:1], "i")}).Metrics())
	require.Empty(t, (&result.Result{Figures: s.figures(all, "i")}).Metrics())
	require.InDelta(t, 9, *s.figures(all[1:], "i").Completed, 0)
	require.InDelta(t, 9, *s.figures(all[:1], "a").Completed, 0)
	require.Zero(t, *s.figures(all[:1], "h").Completed, "it did nothing")
}

// The rates of a backlog are from its first to its last message, though the parts waited for it within a second.
func TestBacklogOfHosts(t *testing.T) {
	s := shardsOf(t, `{"steps": [{"name": "read", "groups": [{"consumers": 1}]}]}`)
	for range 2 {
		r := &result.Result{Steps: []result.Step{{Name: "read", Figures: &result.Figures{Since: new(int64(second / 2)), Span: 4 * second}}}}
		for i, n := range []uint64{50, 100, 100, 100, 50} {
			r.Rows = append(r.Rows, result.Row{
				Step: "read", Phase: result.Measure, Elapsed: int64(i+1) * second, Length: second, Counts: result.Counts{Consumers: &result.Consumers{Received: n}},
			})
		}
		s.parts, s.starts = append(s.parts, r), append(s.starts, 7*second)
	}
	f := (&result.Result{Figures: s.figures(s.plan.Steps, "")}).Metrics()
	require.Equal(t, map[string]float64{"received.avg": 200, "received.min": 200, "received.max": 200}, f)
}

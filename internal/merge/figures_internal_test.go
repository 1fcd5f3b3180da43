package merge

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// The stalls of a step are those that began in it; which groups a stall of several groups was of is not known.
func TestStallsOfParts(t *testing.T) {
	s := shards{plan: planned{Stalls: "1s"}, merged: &result.Result{Stalls: []result.Stall{
		{Time: 1, Length: 2, Group: "a"}, {Time: 3, Length: 2, Group: "b"}, {Time: 300, Length: 90, Warmup: true}, {Time: 5000, Length: 9},
	}}}
	require.Len(t, s.stalls(0, 9000, ""), 3)
	require.Len(t, s.stalls(2, 1000, ""), 1)
	require.Equal(t, s.merged.Stalls[:1], s.stalls(0, 1000, "a"))
	require.NotNil(t, s.stalls(0, 1000, "c"), "it has none")
	require.Nil(t, s.stalls(0, 9000, "a"))
	s.merged.MoreStalls = 3
	require.Nil(t, s.stalls(0, 9000, ""), "what is not listed may be of the same time, or longer")
}

// TestGroupOfSteps: a group has figures over the steps that have it, as far as results say what was measured of
// it.
func TestGroupOfSteps(t *testing.T) {
	counts := func(n uint64) result.Counts { return result.Counts{Producers: &result.Producers{Sent: n}} }
	group := func(name string, n uint64) result.Group {
		return result.Group{Name: name, Counts: counts(n), Measured: counts(n - 1)}
	}
	m := &result.Result{Steps: []result.Step{
		{Name: "both", Groups: []result.Group{group("a", 10), group("b", 20)}},
		{Name: "one", Counts: counts(500)},
		{Name: "last", Groups: []result.Group{group("i", 7), group("b", 30)}},
	}}
	s := &shards{merged: m, parts: []*result.Result{{}}, starts: []int64{0}, plan: planned{Steps: []plannedStep{
		{Name: "both", Groups: []plannedGroup{{Name: "a"}, {Name: "b"}}},
		{Name: "one", Groups: []plannedGroup{{Name: "b"}}},
		{Name: "unseen", Groups: []plannedGroup{{Name: "c"}, {Name: "d"}, {Name: "e"}, {Name: "f"}, {Name: "g"}, {Name: "h"}}},
		{Name: "last", Groups: []plannedGroup{{Name: "i"}, {Name: "b"}}},
	}}}
	for _, c := range []struct {
		step, group string
		sent        float64 // after the warm-up
	}{{"", "a", 9}, {"", "b", 548}, {"last", "b", 29}, {"last", "i", 6}, {"", "i", 6}, {"", "c", -1}} {
		var step *plannedStep
		for i := range s.plan.Steps {
			if s.plan.Steps[i].Name == c.step {
				step = &s.plan.Steps[i]
			}
		}
		sent, known := s.metrics(step, c.group)["sent"]
		require.Equal(t, c.sent >= 0, known, c)
		require.InDelta(t, max(0, c.sent), sent, 0, c)
	}
	s.plan.Steps[1].Warmup = "1s"
	require.Nil(t, s.metrics(nil, "b"), "what was due in the warm-up of its own step is not known")
}

// The lowest and highest rates are of the seconds in which all hosts measured, by one clock, also if these began
// between two seconds.
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
	of := func(later int64, parts ...*result.Result) map[string]float64 {
		s := shards{parts: parts, starts: []int64{7 * second, 7*second + later}}
		figures, _ := s.figures([]plannedStep{{Name: "load", Duration: "5s", Groups: []plannedGroup{{Producers: 1, Consumers: 1}}}}, "")
		f := (&result.Result{Figures: figures}).Metrics()
		maps.DeleteFunc(f, func(name string, _ float64) bool { return strings.HasSuffix(name, ".avg") })
		return f
	}
	f := of(0, part(5, 100, 10, 100, 130), part(5, 100, 10, 100, 130))
	require.Equal(t, map[string]float64{"completed.min": 20, "completed.max": 260, "received.min": 20, "received.max": 260}, f)
	f = of(0, part(5, 100, 10, 100, 130), part(0, 0, 10, 0, 0))
	require.Equal(t, map[string]float64{"completed.min": 20, "completed.max": 130, "received.min": 20, "received.max": 130}, f)
	f = of(400_000, part(100, 100, 100, 100, 100), part(60, 60, 60, 60, 60))
	require.InDelta(t, 160, f["completed.min"], 1e-9)
	require.InDelta(t, 160, f["completed.max"], 1e-9)
	require.Empty(t, of(2*second, part(1, 100, 100, 100, 100), part(1, 100, 100, 100, 100)), "two common seconds are too few")
	require.Empty(t, of(100*second, part(1, 100, 100, 100, 100), part(1, 100, 100, 100, 100)))
	require.Empty(t, of(0, part(), part(1, 1, 1, 1)))
	reader := part(5, 100, 100, 100, 100)
	for i := range reader.Rows {
		reader.Rows[i].Producers = nil
	}
	require.Equal(t, map[string]float64{"received.min": 200, "received.max": 200}, of(0, reader, reader), "nothing was sent")
	none := part(0, 0, 0, 0, 0)
	require.Equal(t, map[string]float64{"completed.min": 0, "completed.max": 0, "received.max": 0}, of(0, none, none),
		"the lowest rate of receiving counts from the first receipt on")
	short := part(5, 100, 10, 100, 50) // whose last second is cut: it counts with the one before
	short.Rows[4].Length, short.Rows[4].Elapsed = second/2, short.Rows[3].Elapsed+second/2
	require.Equal(t, map[string]float64{"completed.min": 20, "completed.max": 200, "received.min": 20, "received.max": 200}, of(0, short, short))
	short.Rows[4].Producers.Completed, short.Rows[4].Consumers.Received = 110, 0
	require.Equal(t, map[string]float64{"completed.min": 20, "completed.max": 280, "received.min": 20, "received.max": 200}, of(0, short, short))
}

package merge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// Stalls of several hosts at the same time are one; those of a warm-up and of another step do not count.
func TestStallsOfHosts(t *testing.T) {
	f := values{}
	f.stalls([]result.Stall{
		{Host: "a", Time: 100, Length: 50},
		{Host: "b", Time: 120, Length: 10},
		{Host: "c", Time: 140, Length: 40},
		{Host: "a", Time: 180, Length: 5},
		{Host: "a", Time: 500, Length: 7},
		{Time: 300, Length: 90, Warmup: true},
		{Time: 5000, Length: 900},
	}, 0, 1000)
	require.Equal(t, values{"stall.count": 3, "stall.max": 50}, f)
	f = values{}
	f.reconnections([]result.Outage{{Host: "a", Time: 10, Length: 5, InDoubt: 2}, {Host: "b", Time: 12, Length: 30, InDoubt: 3}, {Time: 90}})
	require.Equal(t, values{"outage.count": 2, "outage.max": 30, "in_doubt": 5}, f)
	f = values{} // two hosts that each tell a stall of sends from one of receipts
	f.stalls([]result.Stall{
		{Host: "a", Time: 200, Length: 200}, {Host: "a", Time: 300, Length: 200}, {Host: "b", Time: 201, Length: 200}, {Host: "b", Time: 301, Length: 200},
	}, 0, 1000)
	require.Equal(t, values{"stall.count": 2, "stall.max": 200}, f)
	f = values{}
	f.stalls(nil, 0, 1000)
	require.Equal(t, values{"stall.count": 0, "stall.max": 0}, f)
}

// The lowest and highest rates are of the seconds in which all hosts measured, by one clock, also if these began
// between two seconds.
func TestSecondsOfHosts(t *testing.T) {
	const second = 1_000_000
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
	of := func(later int64, parts ...*result.Result) values {
		f := values{}
		s := seconds{parts: parts, starts: []int64{7 * second, 7*second + later}, of: func(r *result.Row) *result.Counts { return &r.Counts }}
		s.extremes(f)
		return f
	}
	f := of(0, part(5, 100, 10, 100, 130), part(5, 100, 10, 100, 130))
	require.Equal(t, values{"completed.min": 20, "completed.max": 260, "received.min": 20, "received.max": 260}, f)
	f = of(0, part(5, 100, 10, 100, 130), part(0, 0, 10, 0, 0))
	require.Equal(t, values{"completed.min": 20, "completed.max": 130, "received.min": 20, "received.max": 130}, f)
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
	require.Equal(t, values{"received.min": 200, "received.max": 200}, of(0, reader, reader), "nothing was sent")
	none := part(0, 0, 0, 0, 0)
	require.Equal(t, values{"completed.min": 0, "completed.max": 0}, of(0, none, none), "receiving counts from the first receipt on")
}

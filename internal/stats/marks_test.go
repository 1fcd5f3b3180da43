package stats

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// TestMarks: a mark is passed within its interval, at the rate of that interval, or of the second before if it is
// the rest of a load. Marks that were not reached are missing. Each step counts from its start.
func TestMarks(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_000_000, 0)
	var m marker
	var total Counters
	at := start
	interval := func(completed, received uint64, length time.Duration) {
		delta := Counters{result.Completed: completed, result.Received: received}
		s := &Snapshot{From: at, To: at.Add(length), Row: result.Row{Counts: delta.Counts(true, true)}}
		total = total.Add(delta)
		s.Total, at = total.Counts(true, true), s.To
		m.add(s)
	}
	m.step, m.of, m.counter, m.marks, m.start = "one", "completed", result.Completed, []uint64{50, 100, 250, 305, 1000}, start
	interval(0, 5, time.Second)
	interval(100, 0, time.Second)
	interval(0, 0, time.Second)
	interval(200, 0, 800*time.Millisecond)
	interval(10, 0, 100*time.Millisecond)
	require.Equal(t, []result.Mark{
		{Step: "one", Of: "completed", Messages: 50, Elapsed: 1500_000, Average: 50 / 1.5, Momentary: 100},
		{Step: "one", Of: "completed", Messages: 100, Elapsed: 2_000_000, Average: 50, Momentary: 100},
		{Step: "one", Of: "completed", Messages: 250, Elapsed: 3600_000, Average: 250 / 3.6, Momentary: 250},
		{Step: "one", Of: "completed", Messages: 305, Elapsed: 3850_000, Average: 305 / 3.85, Momentary: 250},
	}, m.list)

	short := &marker{counter: result.Completed, marks: []uint64{100, 200}, start: start}
	first, second := Counters{result.Completed: 190}, Counters{result.Completed: 10}
	short.add(&Snapshot{From: start, To: start.Add(100 * time.Millisecond), Row: result.Row{Counts: first.Counts(true, true)}, Total: first.Counts(true, true)})
	short.add(&Snapshot{
		From: start.Add(100 * time.Millisecond), To: start.Add(600 * time.Millisecond),
		Row: result.Row{Phase: result.Drain, Counts: second.Counts(true, true)}, Total: first.Add(second).Counts(true, true),
	})
	require.Len(t, short.list, 2)
	require.InDelta(t, 1900, short.list[1].Momentary, 1e-6, "that of the load, not that of its drain")

	m.step, m.of, m.counter, m.marks, m.start, m.list = "two", "received", result.Received, []uint64{10, 20}, at, nil
	m.base = total[result.Received]
	interval(1000, 10, time.Second)
	interval(0, 40, time.Second)
	require.Equal(t, []result.Mark{
		{Step: "two", Of: "received", Messages: 10, Elapsed: 1_000_000, Average: 10, Momentary: 10}, {Step: "two", Of: "received", Messages: 20, Elapsed: 1_250_000, Average: 16, Momentary: 40},
	}, m.list)
}

package result

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// timed is a shard of two. Its clock is ahead, and its load began later than the first one. A message needed 10 us
// from one to the other.
func timed(number int, ahead, later int64) *Result {
	start := sampleStart().UnixMicro() + ahead + later
	r := &Result{Head: sampleHead(), Complete: true, End: start + 5*second, Outcome: Outcome{Success: true}}
	r.Start, r.Shard, r.Host.Name = start, &Shard{Number: number, Of: 2}, fmt.Sprint("host-", number)
	r.Rows = []Row{{
		Step: "load", Phase: Measure, Time: start + second, Elapsed: second, Length: second,
		Arrivals: []Arrival{{Shard: 3 - number, Messages: 10, Fastest: Difference(ahead + 10)}},
	}}
	r.Steps = []Step{{Name: "load", Start: start, End: start + 4*second}}
	r.Stalls = []Stall{{Side: "both", Time: start + 2*second, Elapsed: 2 * second, Length: second}}
	r.Outages = []Outage{{Time: start + 3*second, Elapsed: 3 * second, Length: second, Workers: []string{"producer-0"}}}
	r.BrokerSide = []BrokerSide{{Sources: []string{"process 1"}, Events: []BrokerEvent{{Time: start + second, Text: "ended"}}}}
	return r
}

// The moments of a merged result are by the clock of the first shard, and times since the start of the load by the
// earliest start.
func TestMergedTimes(t *testing.T) {
	t.Parallel()
	const ahead, later = 2 * second, 300_000
	first, other := timed(1, 0, 0), timed(2, ahead, later)
	first.Rows[0].Arrivals[0].Fastest = 10 - ahead
	before := asJSON(t, []*Result{first, other})
	m := musttest.Get(Merge(first, other))(t)
	require.Equal(t, before, asJSON(t, []*Result{first, other}), "the shards stay as they are")
	near := func(want, got int64) {
		t.Helper()
		require.InDelta(t, want, got, 100, "drift between the clocks")
	}
	start := sampleStart().UnixMicro()
	near(start, m.Start)
	near(start+later+5*second, m.End)
	near(start, m.Steps[0].Start)
	near(start+later+4*second, m.Steps[0].End)
	for i, since := range []int64{0, later} {
		near(start+since+2*second, m.Stalls[i].Time)
		near(since+2*second, m.Stalls[i].Elapsed)
		near(start+since+3*second, m.Outages[i].Time)
		near(since+3*second, m.Outages[i].Elapsed)
		near(start+since+second, m.BrokerSide[i].Events[0].Time)
		name := fmt.Sprintf("host-%d (shard %d)", i+1, i+1)
		require.Equal(t, name, m.Stalls[i].Host)
		require.Equal(t, name, m.Outages[i].Host)
	}
	require.Equal(t, other.Start, m.Parts[1].Start, "by its own clock")
	require.Equal(t, other.End, m.Parts[1].End)
}

// Clocks that cannot be are not known, and nothing is corrected by them: not even where bounds double with each host.
func TestContradictingClocks(t *testing.T) {
	t.Parallel()
	for _, fastest := range []Difference{-1000, -second, -(1 << 50), -maxCounter} {
		for _, hosts := range []int{2, 3, 40, 64, 200} {
			var parts []*Result
			for number := 1; number <= hosts; number++ {
				r := timed(number, 0, 0)
				r.Shard.Of, r.Rows[0].Arrivals = hosts, nil
				for from := 1; from <= hosts; from++ {
					if from != number {
						r.Rows[0].Arrivals = append(r.Rows[0].Arrivals, Arrival{Shard: from, Messages: 1, Fastest: fastest})
					}
				}
				parts = append(parts, r)
			}
			m := musttest.Get(Merge(parts...))(t)
			for i := range m.Parts {
				require.Nil(t, m.Parts[i].Clock, "%d of %d", fastest, hosts)
			}
			require.Equal(t, parts[0].End, m.End)
			require.Len(t, m.Outcome.Warnings, 1)
			require.Contains(t, m.Outcome.Warnings[0], "the times in the messages contradict each other")
		}
	}
}

package result

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
)

// sampleSteps is a run of a scenario: fill, hold and drain, of so many seconds each.
func sampleSteps(t testing.TB, seed uint64, seconds, messages int) *Result {
	t.Helper()
	names := []string{"fill", "hold", "drain"}
	r := sample(t, seed, len(names)*seconds, messages)
	r.Scenario, r.Steps = "backlog", nil
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Step = names[i/seconds]
		if i%seconds == seconds-1 {
			row.Phase = Drain
		}
		if i%seconds == 0 {
			r.Steps = append(r.Steps, Step{Name: row.Step, Reason: "duration reached", Start: row.Time - row.Length})
		}
		s := &r.Steps[len(r.Steps)-1]
		s.End = row.Time
		s.Counts.Add(&row.Counts)
		if row.Phase != Warmup {
			s.Latencies.add(&row.Latencies)
		}
	}
	for i := range r.Steps[:2] {
		s := &r.Steps[i]
		s.Groups = []Group{
			{
				Name: "senders", Due: s.Counts.Producers.Sent, Counts: Counts{Producers: s.Counts.Producers},
				Measured: Counts{Producers: s.Counts.Producers}, Latencies: Latencies{Ack: s.Latencies[Ack], Response: s.Latencies[Response]},
			},
			{
				Name: "readers", Counts: Counts{Consumers: s.Counts.Consumers}, Measured: Counts{Consumers: s.Counts.Consumers},
				Latencies: Latencies{Transfer: s.Latencies[Transfer]},
			},
		}
	}
	failed, value := 1, 51_000.0
	r.Commands = []Command{
		{Step: "fill", When: "before", Command: "start-broker 4g", Status: new(int), Took: 1_234_567, Output: "started\n"},
		{Step: "drain", When: "after", Command: "check\x1b[2J\u202e", Status: &failed, Took: 5},
		{Step: "drain", When: "after", Command: "killed", Took: 10 * second},
	}
	r.Thresholds = []Threshold{
		{Threshold: "lost == 0", Metric: "lost", Unit: "messages"},
		{Step: "hold", Threshold: "ack.p99 < 50ms", Metric: "ack.p99", Unit: "us", Measured: &value},
	}
	return r
}

// The files of a run of several steps are the same as the kept files, are read again number by number, and the schema
// describes them.
func TestGoldenSteps(t *testing.T) {
	t.Parallel()
	want := sampleSteps(t, 8, 2, 20)
	dir, kept := write(t, want), filepath.Join("testdata", "v1-steps")
	resulttest.Compile(t, Schema(), SchemaID).Validate(t, dir)
	for _, name := range names(t, dir) {
		text := musttest.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		require.NotContains(t, string(text), "\x1b")
		requireGolden(t, kept, name, text)
	}
	got := musttest.Get(ReadHistograms(kept))(t)
	require.Equal(t, asJSON(t, want), asJSON(t, got))
	var sum Counts
	for i := range got.Steps {
		sum.Add(&got.Steps[i].Counts)
	}
	require.Equal(t, asJSON(t, got.Total), asJSON(t, sum))
}

// Steps of the same name merge; commands and their hosts are kept. A step that one part did not reach comes from the
// others.
func TestMergeSteps(t *testing.T) {
	t.Parallel()
	a, b := sampleSteps(t, 11, 3, 20), sampleSteps(t, 12, 3, 30)
	a.Shard, b.Shard, b.Host.Name = &Shard{1, 2}, &Shard{2, 2}, "host-2"
	b.Steps[1].Reason = "interrupted"
	b.Steps, b.Rows, b.Commands = b.Steps[:2], b.Rows[:6], b.Commands[:1]
	got := musttest.Get(Merge(a, b))(t)
	require.Equal(t, "backlog", got.Scenario)
	var steps, reasons []string
	var sent []uint64
	for i := range got.Steps {
		s := &got.Steps[i]
		steps, reasons, sent = append(steps, s.Name), append(reasons, s.Reason), append(sent, s.Counts.Producers.Sent)
	}
	require.Equal(t, []string{"fill", "hold", "drain"}, steps)
	require.Equal(t, []string{"duration reached", "different reasons", "duration reached"}, reasons)
	require.Equal(t, []uint64{150, 150, 60}, sent)
	require.EqualValues(t, 100, got.Steps[0].Latencies[Ack].Count, "the warm-up is in none")
	require.EqualValues(t, 150, got.Steps[1].Latencies[Ack].Count)
	require.EqualValues(t, 150, got.Steps[1].Latencies[Ack].Histogram.Count())
	var hosts []string
	for _, c := range got.Commands {
		hosts = append(hosts, c.Host+" "+c.When+" "+c.Step)
	}
	require.Equal(t, []string{"host-1 before fill", "host-1 after drain", "host-1 after drain", "host-2 before fill"}, hosts)
	require.Nil(t, got.Thresholds)
	require.Empty(t, a.Commands[0].Host, "the parts stay as they are")
	byStep := map[string]uint64{}
	for i := range got.Rows {
		byStep[got.Rows[i].Step] += got.Rows[i].Producers.Sent
	}
	require.Equal(t, map[string]uint64{"fill": 150, "hold": 150, "drain": 60}, byStep)
}

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

// A rendezvous knows offsets where no messages go both ways, and where it knows them better. Those of a killed shard
// get less exact with time.
func TestClocksOfARendezvous(t *testing.T) {
	t.Parallel()
	const ahead = 2 * second
	met := func(lead, err int64) *Offset { return &Offset{Ahead: Difference(lead), Error: err} }
	for name, c := range map[string]struct {
		edit       func(first, other *Result)
		start, end *Offset
	}{
		"no messages": {func(first, other *Result) {
			first.Rows[0].Arrivals, other.Rows[0].Arrivals = nil, nil
		}, met(ahead, 30), met(ahead+40, 37)},
		"one way": {func(first, _ *Result) { first.Rows[0].Arrivals = nil }, met(ahead, 30), met(ahead+40, 37)},
		"killed": {func(first, other *Result) {
			first.Rows[0].Arrivals, other.ClockEnd = nil, nil
			other.Rows[0].Elapsed, other.Rows[0].Length = 100*second, 100*second
		}, met(ahead, 30), met(ahead, 2+20+100*drift+drift)},
		"messages are better": {func(_, other *Result) { other.Clock.Error, other.ClockEnd.Error = 9000, 9000 }, nil, nil},
		"one did not meet":    {func(first, other *Result) { first.Rows[0].Arrivals, other.Clock = nil, nil }, nil, nil},
	} {
		first, other := timed(1, 0, 0), timed(2, ahead, 0)
		first.Rows[0].Arrivals[0].Fastest = 10 - ahead
		first.Clock, first.ClockEnd = met(-100, 10), met(-100, 2)
		other.Clock, other.ClockEnd = met(ahead-100, 20), met(ahead-60, 35)
		c.edit(first, other)
		m := musttest.Get(Merge(first, other))(t)
		clock := m.Parts[1].Clock
		switch {
		case c.start != nil:
			require.Equal(t, Clock{*c.start, *c.end}, *clock, name)
			require.InDelta(t, sampleStart().UnixMicro(), m.Start, 100, name)
		case other.Clock == nil:
			require.Nil(t, clock, name)
		default:
			require.InDelta(t, ahead, int64(clock.Start.Ahead), 1, name)
			require.Less(t, clock.Start.Error, int64(1000), name)
		}
		require.Nil(t, m.Clock)
		require.Nil(t, m.ClockEnd)
	}
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

package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// to lets a group work at another queue.
func to(queue string, edits ...func(*plan.Group)) func(*plan.Group) {
	return func(g *plan.Group) {
		g.Destinations = []driver.Destination{{Name: queue}}
		for _, edit := range edits {
			edit(g)
		}
	}
}

// groupsOf returns the sent, completed, received and measured messages of groups by their names.
func groupsOf(list []stats.Summary) map[string][4]uint64 {
	got := map[string][4]uint64{}
	for i := range list {
		g := &list[i]
		got[g.Name] = [4]uint64{g.Total.Get(result.Sent), g.Total.Get(result.Completed), g.Total.Get(result.Received), g.Measured.Get(result.Completed) + g.Measured.Get(result.Received)}
	}
	return got
}

// Each group has figures of its own, in each step and in the run, and they add up.
func TestGroupsOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Latency = 3 * time.Millisecond })
		s := newScenario(b.Factory(), true)
		slow := func() *plan.Group { return s.senders("slow", to("A", paced("100"))) }
		s.step("one", func(step *plan.Step) {
			step.Duration, step.Warmup = 10*time.Second, 2*time.Second
			step.Thresholds = demands(t, "group.slow.completed.avg >= 99% of target", "group.fast.completed.avg >= 99% of target",
				"group.fast.sent == 3200", "group.slow.sent == 3200", "group.a-readers.received.avg < 101", "group.slow.ack.p50 >= 3ms",
				"group.slow.ack.max < 3ms")
		}, slow(), s.senders("fast", to("B", paced("400"))), s.readers("a-readers", to("A")), s.readers("b-readers", to("B")))
		s.step("two", drainedStep, s.senders("burst", to("B", sending(700))), s.readers("b-readers", to("B")))
		s.step("three", lasting(4*time.Second), slow())
		s.step("four", drainedStep, s.readers("a-readers", to("A")))
		s.plan.Thresholds = demands(t, "group.slow.completed == 1200", "group.a-readers.received == 1200", "group.b-readers.received == 3900")
		sum := s.run(t, nil)
		require.True(t, sum.Outcome.Success, "%q", sum.Problems())
		require.Equal(t, map[string][4]uint64{
			"slow": {1000, 1000, 0, 800}, "fast": {4000, 4000, 0, 3200}, "a-readers": {0, 0, 1000, 800}, "b-readers": {0, 0, 4000, 3200},
		}, groupsOf(sum.Ended[0].Groups))
		require.Equal(t, map[string][4]uint64{"burst": {700, 700, 0, 700}, "b-readers": {0, 0, 700, 700}}, groupsOf(sum.Ended[1].Groups))
		require.Equal(t, map[string][4]uint64{"slow": {400, 400, 0, 400}}, groupsOf(sum.Ended[2].Groups))
		require.Equal(t, map[string][4]uint64{"a-readers": {0, 0, 400, 400}}, groupsOf(sum.Ended[3].Groups))
		require.Equal(t, map[string][4]uint64{
			"slow": {1400, 1400, 0, 1200}, "fast": {4000, 4000, 0, 3200}, "burst": {700, 700, 0, 700},
			"a-readers": {0, 0, 1400, 1200}, "b-readers": {0, 0, 4700, 3900},
		}, groupsOf(sum.Groups))
		require.EqualValues(t, 1400, sum.Groups[0].Due)
		require.EqualValues(t, 400, sum.Ended[2].Groups[0].Due)
		for i := range sum.Ended {
			addUp(t, &sum.Ended[i])
		}
		require.EqualValues(t, 800, sum.Ended[0].Groups[0].Latencies[result.Ack].Count)
		require.EqualValues(t, 3000, sum.Ended[0].Groups[0].Latencies[result.Ack].Max)
		require.Nil(t, sum.Ended[0].Groups[2].Latencies[result.Ack], "it sends nothing")
		require.EqualValues(t, 1200, sum.Groups[0].Latencies[result.Ack].Count)
		require.True(t, sum.Ended[0].Groups[1].Minimum.Completed.Known())
		require.InDelta(t, 400, sum.Ended[0].Groups[1].Minimum.Completed.PerSecond, 1)
		kept := map[string]bool{}
		for i := range sum.Thresholds {
			kept[sum.Thresholds[i].Threshold] = sum.Thresholds[i].Kept
		}
		require.Equal(t, map[string]bool{
			"group.slow.completed.avg >= 99% of target": true, "group.fast.completed.avg >= 99% of target": true,
			"group.fast.sent == 3200": true, "group.slow.sent == 3200": false, "group.a-readers.received.avg < 101": true,
			"group.slow.ack.p50 >= 3ms": true, "group.slow.ack.max < 3ms": false,
			"group.slow.completed == 1200": true, "group.a-readers.received == 1200": true, "group.b-readers.received == 3900": true,
		}, kept)
	})
}

// addUp holds the groups of a step against the step.
func addUp(t *testing.T, s *stats.Summary) {
	t.Helper()
	var total, measured result.Counts
	var acks, transfers int64
	for i := range s.Groups {
		g := &s.Groups[i]
		total.Add(&g.Total)
		measured.Add(g.Measured)
		if g.Latencies[result.Ack] != nil {
			acks += g.Latencies[result.Ack].Count
		}
		if g.Latencies[result.Transfer] != nil {
			transfers += g.Latencies[result.Transfer].Count
		}
	}
	requireEqual(t, s.Total, total, s.Name)
	requireEqual(t, *s.Measured, measured, s.Name)
	if s.Latencies[result.Ack] != nil {
		require.Equal(t, s.Latencies[result.Ack].Count, acks)
	}
	if s.Latencies[result.Transfer] != nil {
		require.Equal(t, s.Latencies[result.Transfer].Count, transfers)
	}
}

// A group that has other workers in a later step is one group in the figures of the run, and its workers have one name
// each.
func TestGroupsWithOtherWorkers(t *testing.T) {
	for _, verified := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newScenario(mem.New().Factory(), verified)
			two := []driver.Destination{{Name: "A"}, {Name: "B"}}
			step := func(name string, count uint64, producers, consumers int) {
				s.step(name, func(step *plan.Step) { step.Drained = name != "one" },
					s.senders("senders", func(g *plan.Group) { g.Destinations, g.Count, g.Producers = two, count, producers }),
					s.readers("readers", func(g *plan.Group) { g.Destinations, g.Consumers = two, consumers }))
			}
			step("one", 300, 1, 1)
			step("two", 600, 3, 2)
			step("three", 300, 1, 1)
			sum := s.run(t, nil)
			require.True(t, sum.Outcome.Success, "%q", sum.Problems())
			require.Equal(t, map[string][4]uint64{"senders": {1200, 1200, 0, 1200}, "readers": {0, 0, 1200, 1200}}, groupsOf(sum.Groups))
			for i := range sum.Ended {
				addUp(t, &sum.Ended[i])
			}
			sent, at := map[string]uint64{}, map[string]string{}
			for i := range sum.Workers {
				w := &sum.Workers[i]
				require.NotContains(t, at, w.Name)
				sent[w.Name], at[w.Name] = w.Get(result.Sent), w.Destination
			}
			require.Equal(t, map[string]uint64{
				"senders-0": 150 + 100 + 150, "senders-1": 150 + 100 + 150, "senders-2": 100, "senders-3": 100, "senders-4": 100, "senders-5": 100,
				"readers-0": 0, "readers-1": 0, "readers-1.2": 0, "readers-2": 0, "readers-3": 0,
			}, sent)
			require.Equal(t, "queue://B", at["readers-1"], "as one reader for each of two queues")
			require.Equal(t, "queue://A", at["readers-1.2"], "as the second of two readers for the first queue")
			if verified {
				require.EqualValues(t, 1200, sum.Verification.Total.Once)
			}
		})
	}
}

// TestReadTime: the rates of a backlog that is read are of the time from its first to its last message, without the
// wait for more; its lowest second is not the one in which it ends.
func TestReadTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mem.New()
		fill := newScenario(b.Factory(), false)
		fill.step("fill", nil, fill.senders("senders", sending(525)))
		fill.run(t, nil)
		s := newScenario(b.Factory(), false)
		s.step("drained", drainedStep, s.readers("readers", func(g *plan.Group) { g.ConsumerRate = plainRate("100") }))
		sum := s.run(t, nil)
		require.EqualValues(t, 525, sum.Total.Get(result.Received))
		require.InEpsilon(t, 100, sum.Values["received.avg"], 0.01)
		require.InEpsilon(t, 100, sum.Values["received.min"], 0.02)
		require.InEpsilon(t, 100, sum.Values["group.readers.received.avg"], 0.01)
		require.InDelta(t, 5.24, sum.Average.Span.Seconds(), 0.02)
	})
}

// A rate may be a share of the rate that one group has reached.
func TestRateRelativeToGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(mem.New().Factory(), false)
		s.step("first", lasting(10*time.Second), s.senders("a", to("A", paced("100"))), s.senders("b", to("B", paced("300"))))
		r, err := plan.ParseRelative("50% of first.group.b.completed.avg")
		require.NoError(t, err)
		s.step("then", lasting(10*time.Second), s.senders("a", to("A", func(g *plan.Group) { g.Rate.Relative = r })))
		sum := s.run(t, nil)
		require.InDelta(t, 1500, sum.Ended[1].Total.Get(result.Completed), 2)
		require.InDelta(t, 1500, sum.Ended[1].Latencies[result.Response].Count, 2)
		require.True(t, s.plan.Steps[1].Groups[0].Rate.IsZero(), "the plan stays as it is")
	})
}

// The thresholds of the only step of a run are judged, too.
func TestThresholdsOfTheOnlyStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(mem.New().Factory(), false)
		s.step("load", func(step *plan.Step) {
			step.Duration, step.Thresholds = 5*time.Second, demands(t, "sent == 500", "group.senders.sent == 499", "completed.avg >= 99% of target")
		}, s.senders("senders", paced("100")), s.readers("readers", nil))
		sum := s.run(t, nil)
		require.True(t, sum.Outcome.Success, "%q", sum.Problems())
		var got []string
		for i := range sum.Thresholds {
			got = append(got, sum.Thresholds[i].String())
		}
		require.Len(t, got, 3)
		require.Equal(t, []string{"load: sent == 500: passed, 500", "load: group.senders.sent == 499: FAILED, 500"}, got[:2])
		require.Contains(t, got[2], "load: completed.avg >= 99% of target: passed")
	})
}

package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// GroupInterval holds the figures of a group of a scenario in an interval.
type GroupInterval struct {
	Name            string
	Sends, Receives bool // which workers the group has
	Total           Counters
	Delta           Counters
	// Latencies became known in the interval, as in [Snapshot]; nil without a value. Messages that were due in the
	// warm-up and ended after it are left out.
	Latencies result.Latencies
}

// join returns the interval and the one after it, as one.
func (g *GroupInterval) join(next GroupInterval) GroupInterval {
	sum := g.With(next)
	sum.Total = next.Total
	return sum
}

// With returns both groups together, under the name of the first.
func (g *GroupInterval) With(other GroupInterval) GroupInterval {
	sum := *g
	sum.Sends, sum.Receives = g.Sends || other.Sends, g.Receives || other.Receives
	sum.Total, sum.Delta = g.Total.Add(other.Total), g.Delta.Add(other.Delta)
	sum.Latencies = result.Latencies{}
	sum.Latencies.Merge(g.Latencies)
	sum.Latencies.Merge(other.Latencies)
	return sum
}

// groupMeter sums up the intervals of one group.
type groupMeter struct {
	producers []int                   // their indices
	now       [parts]Counters         // as of this Collect
	fresh     [parts]result.Latencies // since the last one
	total     Counters                // as of the last Collect
	parts     [parts]Counters         // of total, the share of messages
	run, step sums
}

// named returns the figures of nothing.
func (g *groupMeter) named() StepSummary {
	return StepSummary{Name: g.run.Name, Sends: g.run.Sends, Receives: g.run.Receives}
}

// SetGroups lets the collector sum up each group as well. Call it after SetWorkers, which names their workers, and
// before the first Collect.
func (c *Collector) SetGroups(list []RunGroup) {
	c.groupOf = make([]*groupMeter, len(c.producers)+len(c.consumers))
	for i := range list {
		g := new(groupMeter)
		g.run.Name, g.run.Sends, g.run.Receives = list[i].Name, list[i].Sends, list[i].Receives
		g.step.StepSummary = g.named()
		c.groups = append(c.groups, g)
		for i := range c.workers {
			if c.workers[i].Group != g.run.Name {
				continue
			}
			if c.groupOf[i] = g; i < len(c.producers) {
				g.producers = append(g.producers, i)
			}
		}
	}
}

// targetsOf returns the counters and latencies to which worker i is added: its group's, which [Collector.addGroups]
// adds up, or, without groups, the collector's own.
func (c *Collector) targetsOf(
	i int, counts *[parts]Counters, latencies [parts]*result.Latencies,
) (*[parts]Counters, [parts]*result.Latencies) {
	if c.groups == nil || c.groupOf[i] == nil {
		return counts, latencies
	}
	g := c.groupOf[i]
	var own [parts]*result.Latencies
	for part := range parts {
		if latencies[part] != nil {
			own[part] = &g.fresh[part]
		}
	}
	return &g.now, own
}

// addGroups adds the counters and latencies from the recorders of groups.
func (c *Collector) addGroups(counts *[parts]Counters, latencies [parts]*result.Latencies) {
	for _, g := range c.groups {
		for part := range parts {
			counts[part] = counts[part].Add(g.now[part])
			if latencies[part] != nil {
				latencies[part].Merge(g.fresh[part])
			}
		}
	}
}

// groupIntervals sums up the interval of each group, and returns them. All recorders have been collected.
func (c *Collector) groupIntervals(phase Phase, now time.Time, first time.Duration, last bool) (list []GroupInterval) {
	for _, g := range c.groups {
		total := g.now[Warmup].Add(g.now[Measure])
		var known uint64
		for _, i := range g.producers {
			r := c.producers[i]
			c.addWaits(i, &total)
			g.now[Measure][result.Sent] += r.sent[Measure].Load()
			known += c.sends[i].known(last)
		}
		total[result.Sent] = max(known, g.total[result.Sent])
		s := &Snapshot{
			Phase: phase, From: c.last, To: now, Elapsed: now.Sub(c.start), Delta: total.Sub(g.total),
			Latencies: g.fresh[Measure],
		}
		if phase == Warmup {
			s.Latencies = g.fresh[Warmup]
		}
		g.run.add(s, g.total[result.Received], first)
		g.step.add(s, g.total[result.Received], first)
		list = append(list, GroupInterval{
			Name: g.run.Name, Sends: g.run.Sends, Receives: g.run.Receives,
			Total: total, Delta: s.Delta, Latencies: s.Latencies,
		})
		g.total, g.parts = total, g.now
		g.now, g.fresh = [parts]Counters{}, [parts]result.Latencies{}
	}
	return list
}

// groupSums returns the figures of each group in the run, or in the present step.
func (c *Collector) groupSums(step bool) (list []StepSummary) {
	for _, g := range c.groups {
		sums := &g.run
		if step {
			sums = &g.step
		}
		sum := sums.upTo(&g.total, &g.parts[Measure])
		c.setStalls(&sum, step, g.run.Name)
		list = append(list, sum)
	}
	return list
}

package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// Members are the recorders of a group, by their indices in the collector.
type Members struct {
	Name                 string
	Producers, Consumers []int
}

// GroupInterval holds the figures of a group of a scenario in an interval.
type GroupInterval struct {
	Name            string
	Sends, Receives bool // which workers the group has
	Total           Counters
	Delta           Counters
	// Latencies became known in the interval, as in [Snapshot]; nil where there is none. Messages that were due in the
	// warm-up and ended after it are left out.
	Latencies result.Latencies
}

// join returns the interval and the one after it, as one.
func (g *GroupInterval) join(next GroupInterval) GroupInterval {
	next.Delta = g.Delta.Add(next.Delta)
	latencies := next.Latencies
	next.Latencies = result.Latencies{}
	next.Latencies.Merge(g.Latencies)
	next.Latencies.Merge(latencies)
	return next
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
	Members
	now    [parts]Counters         // as of this Collect
	fresh  [parts]result.Latencies // since the last one
	total  Counters                // as of the last Collect
	parts  [parts]Counters         // of total, the share of messages
	whole  StepSummary
	step   StepSummary
	before struct{ total, measured Counters } // as of the begin of the step
}

// Groups lets the collector sum up each group as well. Each recorder belongs to one group at most. Call it before the
// first Collect.
func (c *Collector) Groups(list []Members) {
	c.groupOf = make([]*groupMeter, len(c.producers)+len(c.consumers))
	for _, members := range list {
		g := &groupMeter{Members: members}
		g.whole = StepSummary{Name: g.Name, Sends: len(g.Producers) > 0, Receives: len(g.Consumers) > 0}
		g.step = g.whole
		c.groups = append(c.groups, g)
		for _, i := range g.Producers {
			c.groupOf[i] = g
		}
		for _, i := range g.Consumers {
			c.groupOf[len(c.producers)+i] = g
		}
	}
}

// into returns the counters and latencies to which worker i is added: those of its group, which [Collector.gather] adds
// up, or, without groups, the collector's own.
func (c *Collector) into(
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

// gather adds the counters and latencies from the recorders of groups.
func (c *Collector) gather(counts *[parts]Counters, latencies [parts]*result.Latencies) {
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
func (c *Collector) groupIntervals(phase Phase, now time.Time, last bool) (list []GroupInterval) {
	for _, g := range c.groups {
		total := g.now[Warmup].Add(g.now[Measure])
		var known uint64
		for _, i := range g.Producers {
			r := c.producers[i]
			total[result.Blocked] += r.blocked.Load() + c.work.workers[i].noLeave
			total[result.NoLeave] += c.work.workers[i].noLeave
			total[result.SocketWaits] += c.work.workers[i].socketWaits
			total[result.LateSends] += r.late.Load()
			total[result.Strays] += r.stray.Load()
			g.now[Measure][result.Sent] += r.sent[Measure].Load()
			known += c.sends[i].known(last)
		}
		total[result.Sent] = max(known, g.total[result.Sent])
		s := &Snapshot{From: c.last, To: now, Elapsed: now.Sub(c.start), Delta: total.Sub(g.total)}
		if phase == Measure {
			g.whole.Extremes.add(s, g.total[result.Received] > 0)
			g.whole.Average.add(s)
			g.step.Extremes.add(s, g.total[result.Received] > g.before.total[result.Received])
			g.step.Average.add(s)
		}
		if phase != Warmup {
			g.whole.Latencies.Merge(g.fresh[Measure])
			g.step.Latencies.Merge(g.fresh[Measure])
		}
		fresh := g.fresh[Measure]
		if phase == Warmup {
			fresh = g.fresh[Warmup]
		}
		list = append(list, GroupInterval{
			Name: g.Name, Sends: g.whole.Sends, Receives: g.whole.Receives, Total: total, Delta: s.Delta, Latencies: fresh,
		})
		g.total, g.parts = total, g.now
		g.now, g.fresh = [parts]Counters{}, [parts]result.Latencies{}
	}
	return list
}

// GroupSums returns the figures of each group over the whole run, as of the last Collect. Their latencies are copies.
func (c *Collector) GroupSums() []StepSummary { return c.groupSums(false) }

// groupSums returns the figures of each group in the run, or in the present step.
func (c *Collector) groupSums(step bool) (list []StepSummary) {
	for _, g := range c.groups {
		sum := g.whole
		sum.Total, sum.Measured = g.total, g.parts[Measure]
		if step {
			sum = g.step
			sum.Total, sum.Measured = g.total.Sub(g.before.total), g.parts[Measure].Sub(g.before.measured)
		}
		sum.Latencies = sum.Latencies.Copy()
		sum.Minimum, sum.Maximum = sum.Extremes.Both()
		sum.Stalls = c.stalls.sum(c.stalls.first(step), ofGroupNamed(g.Name))
		list = append(list, sum)
	}
	return list
}

// beginStep begins to sum up the next step.
func (g *groupMeter) beginStep() {
	g.before.total, g.before.measured = g.total, g.parts[Measure]
	g.step = StepSummary{Name: g.Name, Sends: g.whole.Sends, Receives: g.whole.Receives}
}

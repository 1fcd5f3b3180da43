package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// groupMeter sums up the intervals of one group.
type groupMeter struct {
	periods
	producers []int                   // their indices
	now       [parts]Counters         // as of this Collect
	fresh     [parts]result.Latencies // since the last one
}

// SetGroups lets the collector sum up each group as well. Call it after SetWorkers, which names their workers, and
// before the first Collect.
func (c *Collector) SetGroups(list []RunGroup) {
	c.groupOf = make([]*groupMeter, len(c.producers)+len(c.consumers))
	for i := range list {
		g := new(groupMeter)
		g.run.Name, g.run.Sends, g.run.Receives = list[i].Name, list[i].Sends, list[i].Receives
		g.beginStep()
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

// addRowGroups sums up the interval of each group, and adds the groups to the row if there are several. Groups beyond
// [result.MaxRowGroups] share one entry. All recorders have been collected.
func (c *Collector) addRowGroups(row *result.Row, length, first time.Duration, last bool) {
	for i, g := range c.groups {
		total := g.now[Warmup].Add(g.now[Measure])
		var known uint64
		for _, i := range g.producers {
			r := c.producers[i]
			c.addWaits(i, &total)
			g.now[Measure][result.Sent] += r.sent[Measure].Load()
			known += c.sends[i].known(last)
		}
		total[result.Sent] = max(known, g.total[result.Sent])
		delta, latencies := total.Sub(g.total), g.fresh[Measure]
		if row.Phase == result.Warmup {
			latencies = g.fresh[Warmup]
		}
		group := result.RowGroup{Name: g.run.Name, Counts: delta.Counts(g.run.Sends, g.run.Receives)}
		if latencies != (result.Latencies{}) {
			latencies.Seal()
			group.Latencies = &latencies
		}
		own := result.Row{
			Phase: row.Phase, Time: row.Time, Elapsed: row.Elapsed, Length: row.Length, Counts: group.Counts,
			Latencies: latencies,
		}
		g.add(&own, length, first, &total, &g.now)
		if i >= result.MaxRowGroups {
			group.Name = result.OtherGroups
		}
		if len(c.groups) > 1 && (delta != Counters{} || group.Latencies != nil) {
			row.AddGroup(&group)
		}
		g.now, g.fresh = [parts]Counters{}, [parts]result.Latencies{}
	}
}

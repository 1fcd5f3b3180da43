package stats

import (
	"github.com/perfmq/perfmq/pkg/result"
)

// WorkerTotals returns the totals of all workers, warm-up included, the producers first. Call it after the last
// Collect.
func (c *Collector) WorkerTotals() []result.Worker {
	list := make([]result.Worker, len(c.work))
	for i := range list {
		var counts [parts]Counters
		produces := i < len(c.producers)
		if produces {
			r := c.producers[i]
			r.collect(&counts, [parts]*result.Latencies{})
			counts[Measure][result.Sent] = ofBoth(&r.sent)
			c.addWaits(i, &counts[Measure])
		} else {
			c.consumers[i-len(c.producers)].collect(&counts, [parts]*result.Latencies{})
		}
		total := counts[Warmup].Add(counts[Measure])
		list[i] = result.Worker{
			Name: c.workers[i].Name, Destination: c.workers[i].Destination, Counts: total.Counts(produces, !produces),
		}
	}
	return list
}

// addWaits adds the counts of producer i that no message has.
func (c *Collector) addWaits(i int, total *Counters) {
	r, meter := c.producers[i], &c.work[i]
	total[result.Blocked] += r.blocked.Load() + meter.noLeave
	total[result.NoLeave] += meter.noLeave
	total[result.SocketWaits] += meter.socketWaits
	total[result.LateSends] += r.late.Load()
	total[result.Strays] += r.stray.Load()
}

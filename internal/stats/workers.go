package stats

import (
	"github.com/perfmq/perfmq/pkg/result"
)

// WorkerTotals returns the totals of all workers, the producers first. Call it when they have all ended.
func (c *Collector) WorkerTotals() []Worker {
	list := make([]Worker, 0, len(c.producers)+len(c.consumers))
	add := func(producing bool, collect func(*[parts]Counters)) *Counters {
		w := c.worker(len(list))
		var counts [parts]Counters
		collect(&counts)
		total := counts[Warmup].Add(counts[Measure])
		w.Producing, w.Total = producing, &total
		list = append(list, w)
		return w.Total
	}
	for i, r := range c.producers {
		total := add(true, func(counts *[parts]Counters) { r.collect(counts, [parts]*result.Latencies{}) })
		for part := range parts {
			total[result.Sent] += r.sent[part].Load()
		}
		if waiter := c.worker(i).Waits; waiter != nil {
			waits := waiter.Waits()
			total[result.NoLeave], total[result.SocketWaits] = waits.Credit.Times, waits.Socket.Times
		}
		total[result.NoLeave] += c.worker(i).CreditWaits
		total[result.SocketWaits] += c.worker(i).SocketWaits
		total[result.Blocked], total[result.LateSends], total[result.Strays] = r.blocked.Load()+total[result.NoLeave],
			r.late.Load(), r.stray.Load()
	}
	for _, r := range c.consumers {
		add(false, func(counts *[parts]Counters) { r.collect(counts, [parts]*result.Latencies{}) })
	}
	return list
}

package stats

import (
	"github.com/perfmq/perfmq/pkg/result"
)

// WorkerTotal are the totals of one producer or consumer, warm-up included.
type WorkerTotal struct {
	Name        string
	Destination string
	Group       string // empty on a command line
	// Subscription tells the consumers that compete for the messages of a destination from others; empty for a queue.
	Subscription string
	Producing    bool // it is a producer
	Total        Counters
	// Hosts are its messages at each host of the broker, if the URL names several.
	Hosts []HostTotal
}

// WorkerTotals returns the totals of all workers, the producers first. Call it when they have all ended.
func (c *Collector) WorkerTotals() []WorkerTotal {
	list := make([]WorkerTotal, 0, len(c.producers)+len(c.consumers))
	add := func(producing bool, collect func(*[parts]Counters)) *Counters {
		i := len(list)
		w := c.worker(i)
		var counts [parts]Counters
		collect(&counts)
		list = append(list, WorkerTotal{
			Name: w.Name, Destination: w.Destination, Group: w.Group, Subscription: w.Subscription, Producing: producing,
			Total: counts[Warmup].Add(counts[Measure]),
		})
		return &list[i].Total
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
		total[result.NoLeave] += c.worker(i).Denied
		total[result.SocketWaits] += c.worker(i).SocketWaits
		total[result.Blocked], total[result.LateSends], total[result.Strays] = r.blocked.Load()+total[result.NoLeave],
			r.late.Load(), r.stray.Load()
	}
	for _, r := range c.consumers {
		add(false, func(counts *[parts]Counters) { r.collect(counts, [parts]*result.Latencies{}) })
	}
	return list
}

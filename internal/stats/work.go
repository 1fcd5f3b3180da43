package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// saturatedWait is the share of an interval up to which a connection's wait counts as none.
const saturatedWait = 0.01

// workerMeter is the state of a worker as of the last interval.
type workerMeter struct {
	openings    int    // connections so far
	noLeave     uint64 // times that the broker gave it no credit to send
	socketWaits uint64 // times that the network took no more
	fresh       bool   // the present connection has not been looked at
	so, lap     laps   // totals as of the last interval, and the waits in it
}

// readWaits records the waits of all workers since the last interval.
func (c *Collector) readWaits(now time.Time) {
	little := time.Duration(saturatedWait * float64(now.Sub(c.last)))
	for i := range c.work {
		m, worker := &c.work[i], &c.workers[i]
		var waits driver.Waits
		if worker.Waits != nil {
			waits = worker.Waits.Waits()
		}
		m.noLeave = max(m.noLeave, worker.CreditWaits+waits.Credit.Times)
		m.socketWaits = max(m.socketWaits, worker.SocketWaits+waits.Socket.Times)
		if m.lap = (laps{}); worker.Closed {
			continue
		}
		l := m.lapsOf(&waits, c, i, now)
		l.connection = waits.Reader.Known && l.took[lapReader] <= little
		if !m.fresh {
			m.lap = l
		}
		m.fresh = false
	}
}

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

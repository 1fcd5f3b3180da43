package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
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

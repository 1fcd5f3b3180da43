package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// saturatedWait is the share of an interval up to which a connection's wait counts as none.
const saturatedWait = 0.01

// workerMeter is the state of a worker as of the last interval.
type workerMeter struct {
	reader      time.Duration // how long the goroutine that reads its connection has waited so far
	openings    int           // connections so far
	noLeave     uint64        // times that the broker gave it no credit to send
	socketWaits uint64        // times that the network took no more
	fresh       bool          // the present connection has not been looked at
	so, lap     laps          // totals as of the last interval, and the waits in it
}

// readWaits records the waits of all workers since the last interval.
func (c *Collector) readWaits(now time.Time) {
	little := time.Duration(saturatedWait * float64(now.Sub(c.last)))
	for i := range c.work {
		c.work[i].read(c, i, now, little)
	}
}

// read notes the waits of worker i since the last interval.
func (m *workerMeter) read(c *Collector, i int, now time.Time, little time.Duration) {
	worker := c.workers[i]
	m.lap = laps{}
	m.noLeave = max(m.noLeave, worker.CreditWaits)
	m.socketWaits = max(m.socketWaits, worker.SocketWaits)
	if worker.Closed {
		return
	}
	var waits driver.Waits
	if worker.Waits != nil {
		waits = worker.Waits.Waits()
	}
	m.noLeave = max(m.noLeave, worker.CreditWaits+waits.Credit.Times)
	m.socketWaits = max(m.socketWaits, worker.SocketWaits+waits.Socket.Times)
	l := m.lapsOf(&waits, c, i, now)
	l.connection = lap(&m.reader, waits.Reader, little)
	if !m.fresh {
		m.lap = l
	}
	m.fresh = false
}

// lap records the wait of a goroutine so far, and reports whether that has grown by at most little.
func lap(last *time.Duration, so driver.Idle, little time.Duration) (saturated bool) {
	since := so.Time - *last
	*last = so.Time
	return so.Known && since <= little
}

package stats

import (
	"fmt"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// saturatedWait is the share of a second up to which a worker's wait counts as none.
const saturatedWait = 0.01

// Saturation is how often one worker never waited: for a free slot, the broker's credit, the network, the next message
// to be due or to come.
type Saturation struct {
	Worker string
	// Seconds are the full seconds of load in which the worker or its connection never waited. Connection is the number of
	// them in which it was the connection, and Crowded the number in which other programs kept the machine's processors
	// busy, so that it may have waited for one. Of is the number of all seconds in which it could have waited.
	Seconds, Connection, Crowded, Of int
}

// workMeter finds the workers at the limit of the tester.
type workMeter struct {
	workers []workerMeter
}

// workerMeter is the state of a worker as of the last interval.
type workerMeter struct {
	reader, writer time.Duration // how long the goroutines of its connection have waited so far
	openings       int           // connections so far
	noLeave        uint64        // times that the broker gave it no credit to send
	socketWaits    uint64        // times that the network took no more
	fresh          bool          // the present connection has not been looked at
	saturated      bool          // in the last interval
	saturation     Saturation
	so, lap        laps // totals as of the last interval, and the waits in it
}

// work is the saturation of the workers in an interval.
type work struct {
	workers, saturated uint64
	names              []string
}

// interval checks all workers.
func (m *workMeter) interval(c *Collector, now time.Time, phase Phase) (w work) {
	length := now.Sub(c.last)
	counts := length >= FullSecond && phase != Drain
	little := time.Duration(saturatedWait * float64(length))
	for i := range m.workers {
		at, worker := &m.workers[i], c.worker(i)
		at.saturated, at.lap = false, laps{}
		at.noLeave = max(at.noLeave, worker.Denied)
		at.socketWaits = max(at.socketWaits, worker.SocketWaits)
		if worker.Closed {
			continue
		}
		var waits driver.Waits
		if worker.Waits != nil {
			waits = worker.Waits.Waits()
		}
		at.noLeave = max(at.noLeave, worker.Denied+waits.Credit.Times)
		at.socketWaits = max(at.socketWaits, worker.SocketWaits+waits.Socket.Times)
		l := at.lapsOf(&waits, c, i, now)
		busy := l.busy(i < len(c.producers), little)
		connection := lap(&at.reader, waits.Reader, little)
		connection = lap(&at.writer, waits.Writer, little) || connection
		l.connection = connection
		if at.fresh {
			at.fresh = false
			continue
		}
		at.lap = l
		if !counts || !l.ownKnown && !waits.Reader.Known && !waits.Writer.Known {
			continue
		}
		at.saturation.Of++
		w.workers++
		if !busy && !connection {
			continue
		}
		w.saturated++
		w.names = append(w.names, worker.Name)
		at.saturated = true
		at.saturation.Seconds++
		if !busy {
			at.saturation.Connection++
		}
	}
	return w
}

// noLeave returns how often the broker gave any worker no credit to send, as of the last interval.
func (m *workMeter) noLeave() (n uint64) {
	for i := range m.workers {
		n += m.workers[i].noLeave
	}
	return n
}

// socketWaits returns how often the network took no more from any worker, as of the last interval.
func (m *workMeter) socketWaits() (n uint64) {
	for i := range m.workers {
		n += m.workers[i].socketWaits
	}
	return n
}

// reopened resets workers that have a new connection.
func (m *workMeter) reopened(workers []Worker) {
	for i := range min(len(workers), len(m.workers)) {
		at := &m.workers[i]
		at.fresh = at.openings != workers[i].Openings && at.openings > 0
		at.openings = workers[i].Openings
	}
}

// crowded records that other programs kept the machine busy in the last interval.
func (m *workMeter) crowded() {
	for i := range m.workers {
		if at := &m.workers[i]; at.saturated {
			at.saturation.Crowded++
		}
	}
}

// lap records how long a goroutine has waited so far, and tells whether that has grown by at most little.
func lap(last *time.Duration, so driver.Idle, little time.Duration) (saturated bool) {
	since := so.Time - *last
	*last = so.Time
	return so.Known && since <= little
}

// saturation returns the saturation of the workers that were saturated.
func (m *workMeter) saturation(c *Collector) (list []Saturation) {
	for i := range m.workers {
		if s := m.workers[i].saturation; s.Seconds > 0 {
			s.Worker = c.worker(i).Name
			list = append(list, s)
		}
	}
	return list
}

// worker returns a worker, with a generated name if it was not set.
func (c *Collector) worker(i int) Worker {
	if i < len(c.workers) {
		return c.workers[i]
	}
	return Worker{Name: fmt.Sprintf("worker-%d", i)}
}

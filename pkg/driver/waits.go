package driver

import (
	"sync/atomic"
	"time"
)

// Waiter is implemented by producers and consumers that measure their waits by cause. From these waits the engine tells
// whether the broker or the tester limits a load: goroutines that never wait are at the tester's limit.
type Waiter interface {
	// Waits returns the waits of the worker since it was opened, a wait in progress included. It may be called at any
	// time, also after Close, and by any goroutine.
	Waits() Waits
}

// Waits are the waits of a producer or consumer by cause. A wait that is not known is zero.
type Waits struct {
	// Credit is how Send waited for the broker's permission to send: link credit, a session window, room in a queue.
	Credit Wait
	// Socket is how Send waited because the broker did not read: buffers and the network were full.
	Socket Wait
	// Answer is how Send waited for the broker's answer to the message itself, where it sends synchronously.
	Answer Wait
	// Input is how long a consumer had no message to deliver.
	Input Idle
	// Reader is how long the goroutine that reads the worker's connection waited for bytes from the broker. Workers that
	// share a connection have the same one.
	Reader Idle
	// Writer is how long the goroutine that writes to the worker's connection had nothing to write or waited for the
	// network.
	Writer Idle
}

// Wait is how often and for how long a goroutine has waited.
type Wait struct {
	Times uint64
	Time  time.Duration
}

// Idle is how long a goroutine has waited, if that is known.
type Idle struct {
	Known bool
	Time  time.Duration
}

// Meter measures the waits of one goroutine. The zero value is not usable. Begin and End are for that goroutine; Wait
// is safe for concurrent use.
type Meter struct {
	start time.Time
	times atomic.Uint64
	total atomic.Int64 // nanoseconds, the wait in progress not included
	since atomic.Int64 // when that began, nanoseconds from start plus 1; 0 if there is none
}

// NewMeter returns a meter that has measured nothing.
func NewMeter() *Meter { return &Meter{start: time.Now()} }

// Begin says that the goroutine begins to wait.
func (m *Meter) Begin() {
	m.times.Add(1)
	m.since.Store(int64(time.Since(m.start)) + 1)
}

// End says that the wait is over.
func (m *Meter) End() {
	m.total.Add(int64(time.Since(m.start)) + 1 - m.since.Load())
	m.since.Store(0)
}

// Wait returns the waits until now. While End runs, the wait that it ends may be counted twice.
func (m *Meter) Wait() Wait {
	since := m.since.Load()
	w := Wait{Times: m.times.Load(), Time: time.Duration(m.total.Load())}
	if since > 0 {
		w.Time += max(0, time.Since(m.start)+1-time.Duration(since))
	}
	return w
}

// Idle returns for how long the goroutine has waited until now.
func (m *Meter) Idle() Idle { return Idle{Known: true, Time: m.Wait().Time} }

package driver

import (
	"sync/atomic"
	"time"
)

// Waiter is implemented by producers and consumers that measure their waits by cause. From these waits the engine
// reports whether the broker or perfmq limits a load: goroutines that never wait are at perfmq's limit.
type Waiter interface {
	// Waits returns the waits of the worker since it was opened, a wait in progress included. It may be called at any
	// time, also after Close, and by any goroutine.
	Waits() Waits
}

// Waits are the waits of a producer or consumer by cause. An unknown wait is zero.
type Waits struct {
	// Credit is how Send waited for the broker's permission to send: link credit, a session window, room in a queue.
	Credit Wait
	// Socket is how Send waited for a broker that did not read: buffers and the network were full.
	Socket Wait
	// Answer is how Send waited for an answer of the broker: to the message itself, for synchronous sends, or to an
	// earlier one, see [InFlight].
	Answer Wait
	// Input is the time that a consumer had no message to deliver.
	Input Idle
	// Reader is the time that the goroutine that reads the worker's connection waited for bytes from the broker.
	// Workers that share a connection share this goroutine.
	Reader Idle
}

// Wait is the number and the time of a goroutine's waits.
type Wait struct {
	Times uint64
	Time  time.Duration
}

// Idle is the time that a goroutine has waited, if known.
type Idle struct {
	Known bool
	Time  time.Duration
}

// Meter measures the waits of one goroutine. The zero value is not usable. Only that goroutine calls Begin and End, in
// turn; Wait is safe for concurrent use.
type Meter struct {
	start time.Time
	times atomic.Uint64
	// state is the sum of the waits in nanoseconds, doubled; during a wait, minus the beginning of the wait since start,
	// plus one. One word, so that a reader sees both or neither.
	state atomic.Int64
}

// NewMeter returns a meter that has measured nothing.
func NewMeter() *Meter { return &Meter{start: time.Now()} }

// Begin says that the goroutine begins to wait.
func (m *Meter) Begin() {
	m.times.Add(1)
	m.state.Store((m.state.Load()>>1-int64(time.Since(m.start)))<<1 | 1)
}

// End says that the wait is over.
func (m *Meter) End() { m.state.Store((m.state.Load()>>1 + int64(time.Since(m.start))) << 1) }

// Wait returns the waits until now.
func (m *Meter) Wait() Wait {
	w, state := Wait{Times: m.times.Load()}, m.state.Load()
	if w.Time = time.Duration(state >> 1); state&1 != 0 {
		w.Time += time.Since(m.start)
	}
	return w
}

// Idle returns the time that the goroutine has waited until now.
func (m *Meter) Idle() Idle { return Idle{Known: true, Time: m.Wait().Time} }

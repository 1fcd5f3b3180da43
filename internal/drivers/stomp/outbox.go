package stomp

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// outLimit is how many bytes may wait to be written before a Send has to wait. It is large enough for a full
	// window of small messages and small enough that a stalled broker is felt by the sender soon.
	outLimit = 256 << 10
	// outMost is how many bytes may wait that are written without waiting for room: acknowledgements, for the most part,
	// which a broker that does not read but sends would let grow for ever.
	outMost = 16 << 20
	// outKeep is the size above which a buffer is given back once it is empty.
	outKeep = 4 << 20
)

// handed is a message whose handing over to the operating system is all that there is to wait for.
type handed struct {
	producer *producer
	slot     driver.Slot
	seq      uint64
}

// outbox gathers frames and writes them from one goroutine: while a system call is under way the next frames gather,
// and a lone frame goes out at once. All its methods are safe for concurrent use.
type outbox struct {
	conn net.Conn

	mu      sync.Mutex
	buf     []byte   // gathered, not yet taken by the writer
	handed  []handed // the messages in buf that are complete when written
	err     error    // nothing can be written any more
	waiting int      // how many wait for room

	idle   *driver.Meter // of the writer: it has nothing to write
	wake   chan struct{} // to the writer: there is something to write, or the end has come
	room   chan struct{} // to those who wait for room
	failed chan struct{} // closed with err set
	writes atomic.Uint32 // completed ones, for heart-beats
}

func newOutbox(conn net.Conn) *outbox {
	return &outbox{
		conn: conn, idle: driver.NewMeter(), wake: make(chan struct{}, 1), room: make(chan struct{}, 1), failed: make(chan struct{}),
	}
}

// lock locks the outbox for appending to buf, once there is room for a message: unlock has to follow. It returns an
// error, without the lock, when ctx ends first or nothing can be written any more. Waits are measured by meter.
func (o *outbox) lock(ctx context.Context, meter *driver.Meter) error {
	for {
		o.mu.Lock()
		switch {
		case o.err != nil:
			err := o.err
			o.mu.Unlock()
			return err
		case len(o.buf) < outLimit:
			return nil
		}
		o.waiting++
		o.mu.Unlock()
		var err error
		meter.Begin()
		select {
		case <-o.room:
		case <-o.failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		meter.End()
		o.mu.Lock()
		o.waiting--
		// A signal stands for room, not for one who waits: whoever took it passes it on.
		if o.waiting > 0 && len(o.buf) < outLimit {
			notify(o.room)
		}
		o.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// unlock ends what lock began and has it written.
func (o *outbox) unlock() {
	o.mu.Unlock()
	notify(o.wake)
}

// put appends without waiting for room: for the small frames that the reader writes, which must not wait for a broker
// that may wait for the reader.
func (o *outbox) put(frames func([]byte) []byte) error {
	o.mu.Lock()
	if o.err != nil {
		defer o.mu.Unlock()
		return o.err
	}
	o.buf = frames(o.buf)
	o.unlock()
	return nil
}

// fail ends all writing. It does not close the connection.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
		close(o.failed)
	}
}

// run writes until fail is called or a write fails, whose error it returns.
func (o *outbox) run() error {
	var out []byte
	var done []handed
	for {
		o.mu.Lock()
		out, o.buf = o.buf, out[:0]
		done, o.handed = o.handed, done[:0]
		ended := o.err != nil
		if o.waiting > 0 {
			notify(o.room)
		}
		o.mu.Unlock()
		switch {
		case ended:
			return nil //nolint:nilerr // who called fail knows the error
		case len(out) == 0:
			o.idle.Begin()
			select {
			case <-o.wake:
			case <-o.failed:
			}
			o.idle.End()
			continue
		}
		if _, err := o.conn.Write(out); err != nil {
			return err
		}
		o.writes.Add(1)
		for _, h := range done {
			h.producer.complete(h.slot, h.seq, driver.Outcome{})
		}
		if cap(out) > outKeep {
			out = nil
		}
	}
}

// notify leaves a signal in a channel of capacity one.
func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

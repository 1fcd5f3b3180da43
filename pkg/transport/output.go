package transport

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// outputLimit is the number of gathered bytes above which senders wait. It is large enough for a full window of
	// small messages and small enough that senders soon notice a stalled broker.
	outputLimit = 256 << 10
	// answerLimit bounds the bytes gathered by callers that do not wait for room.
	answerLimit = 16 << 20
	// gatherLimit is the number of gathered bytes that are written at once, even if more is announced.
	gatherLimit = 32 << 10
	// keptOutput is the largest buffer that is kept for reuse.
	keptOutput = 2 * outputLimit
	// writesForOthers is the number of writes in a row for the bytes of other senders, before a goroutine of its own
	// takes over.
	writesForOthers = 4
)

func (m *Buffers) getOut() *buffer {
	if b, ok := m.out.Get().(*buffer); ok {
		return b
	}
	return &buffer{make([]byte, 0, 4<<10)}
}

func (m *Buffers) putOut(b *buffer) {
	if cap(b.b) <= keptOutput {
		b.b = b.b[:0]
		m.out.Put(b)
	}
}

// Writer receives notice that its messages were passed to the operating system: for sends without a confirmation.
type Writer interface {
	// Written is called for slots in the order of [Output.Confirm], by one goroutine at a time.
	Written(slots []driver.Slot)
}

// written is a message that ends when it has been passed to the operating system.
type written struct {
	to   Writer
	slot driver.Slot
}

// Output gathers frames and writes them: the goroutine that appended the last frame of a burst writes for all. During
// that system call, the frames of others gather. Only when the network takes no more does a goroutine wait for it. So
// the goroutine that made a lone frame writes it at once, and a burst leaves in few system calls.
//
// All methods are safe for concurrent use.
type Output struct {
	conn io.Writer
	net  *Metered // the same as conn; nil if conn lies above it, as under TLS
	mem  *Buffers
	fail func(error) // called with the first error, by the writing goroutine

	mu      sync.Mutex
	buf     *buffer // gathered bytes; nil if there are none
	confirm []written
	spare   []written
	writing bool  // a goroutine is writing, and will check buf again
	err     error // the error that ended all writing
	waiting int   // number of callers that wait for room

	notified []driver.Slot // of the writing goroutine

	room   chan struct{} // signal for the callers that wait for room
	failed chan struct{} // closed with err set
	idle   chan struct{} // closed when nothing is left to write, if a goroutine waits for that; else nil
	done   sync.WaitGroup
	writes atomic.Uint32 // completed writes, for heart-beats
}

// NewOutput returns an output that writes to conn, which is net or lies above it. fail is called once, with the first
// error of a write, by a goroutine without locks; it must not wait for the output.
func NewOutput(conn io.Writer, net *Metered, mem *Buffers, fail func(error)) *Output {
	o := &Output{
		conn: conn, mem: mem, fail: fail, room: make(chan struct{}, 1), failed: make(chan struct{}),
	}
	if conn == io.Writer(net) && net.polled.usable() {
		o.net = net
	}
	return o
}

// Lock begins a frame: it returns the buffer to append to once there is room, and [Output.Unlock] has to follow with
// the result of append. It fails, without the lock, when ctx ends first or the output has failed. meter, which belongs
// to the calling goroutine, measures the wait.
func (o *Output) Lock(ctx context.Context, meter *driver.Meter) ([]byte, error) {
	o.mu.Lock()
	for {
		if o.err != nil {
			defer o.mu.Unlock()
			return nil, o.err
		}
		if b := o.gathered(); len(b.b) < outputLimit {
			return b.b, nil
		}
		if err := o.waitForRoom(ctx, meter); err != nil {
			return nil, err
		}
	}
}

// gathered returns the buffer of gathered bytes. It is called with the lock.
func (o *Output) gathered() *buffer {
	if o.buf == nil {
		o.buf = o.mem.getOut()
	}
	return o.buf
}

// TryLock is a Lock that does not wait: it returns false, without the lock, where Lock would wait or fail.
func (o *Output) TryLock() ([]byte, bool) {
	o.mu.Lock()
	if o.err == nil {
		if b := o.gathered(); len(b.b) < outputLimit {
			return b.b, true
		}
	}
	o.mu.Unlock()
	return nil, false
}

// waitForRoom is called with the lock, and returns with it unless there is an error.
func (o *Output) waitForRoom(ctx context.Context, meter *driver.Meter) (err error) {
	o.waiting++
	o.flush()
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
	if o.waiting > 0 && (o.buf == nil || len(o.buf.b) < outputLimit) {
		Notify(o.room) // the signal means room, not a certain waiter: its receiver passes it on
	}
	if err != nil {
		o.mu.Unlock()
	}
	return err
}

// Unlock ends a frame that Lock began. With more, another frame, or [Output.Flush], follows at once from the same
// goroutine: the gathered bytes may wait for it.
func (o *Output) Unlock(b []byte, more bool) {
	if len(b) == 0 { // nothing was appended: a write of nothing would count as a sign of life
		o.mem.putOut(o.buf)
		o.buf = nil
		o.mu.Unlock()
		return
	}
	o.buf.b = b
	if more && len(b) < gatherLimit || o.writing {
		o.mu.Unlock()
		return
	}
	o.flush()
}

// Confirm requests a notice when the bytes gathered so far are passed to the operating system. It is called between
// Lock and Unlock.
func (o *Output) Confirm(to Writer, slot driver.Slot) {
	o.confirm = append(o.confirm, written{to, slot})
}

// Put gathers frames without waiting for room, for the small frames with which the reader answers: it must not wait for
// a broker that may wait for the reader. They leave with the next flush. It fails if the broker keeps sending and does
// not read the answers.
func (o *Output) Put(frames func([]byte) []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	b := o.gathered()
	if len(b.b) > answerLimit {
		return driver.Errorf(driver.ClassConnectionLost, "", "does the broker hang?",
			"the broker does not read: %d bytes of answers to it wait", len(b.b))
	}
	b.b = frames(b.b)
	return nil
}

// Flush writes the gathered bytes, without waiting for the network.
func (o *Output) Flush() {
	o.mu.Lock()
	o.flush()
}

// flush is called with the lock, and returns without it.
func (o *Output) flush() {
	if o.writing || o.err != nil || o.buf == nil {
		o.mu.Unlock()
		return
	}
	o.writing = true
	for range writesForOthers {
		b, confirm := o.takeBuffer()
		o.mu.Unlock()
		n, err := o.tryWrite(b.b)
		if err == nil && n < len(b.b) {
			o.writeInBackground(b, n, confirm)
			return
		}
		if !o.endWrite(b, confirm, err) {
			o.mu.Unlock()
			return
		}
	}
	b, confirm := o.takeBuffer()
	o.mu.Unlock()
	o.writeInBackground(b, 0, confirm)
}

// writeInBackground starts a goroutine that writes the rest of b from at on. (It is a separate function because
// captured variables are allocated where they are declared.)
func (o *Output) writeInBackground(b *buffer, at int, confirm []written) {
	o.done.Go(func() { o.writeRest(b, at, confirm) })
}

// tryWrite writes as much as possible without waiting; nothing, if that cannot be determined.
func (o *Output) tryWrite(b []byte) (int, error) {
	if o.net == nil {
		return 0, nil
	}
	return o.net.polled.tryWrite(b)
}

// writeRest writes the rest of b from at on, and the bytes gathered meanwhile, until nothing is left.
func (o *Output) writeRest(b *buffer, at int, confirm []written) {
	for {
		_, err := o.conn.Write(b.b[at:])
		if !o.endWrite(b, confirm, err) {
			o.mu.Unlock()
			return
		}
		b, confirm = o.takeBuffer()
		at = 0
		o.mu.Unlock()
	}
}

// takeBuffer returns the gathered bytes and resets the buffer. It is called with the lock.
func (o *Output) takeBuffer() (*buffer, []written) {
	b, confirm := o.buf, o.confirm
	o.buf, o.confirm, o.spare = nil, o.spare, nil
	if o.waiting > 0 {
		Notify(o.room)
	}
	return b, confirm
}

// endWrite ends a write. It returns with the lock, and whether there is more to write.
func (o *Output) endWrite(b *buffer, confirm []written, err error) (more bool) {
	if err == nil {
		o.writes.Add(1)
		o.notifyWriters(confirm)
	}
	o.mem.putOut(b)
	if err != nil {
		o.Fail(err)
		o.fail(err)
	}
	o.mu.Lock()
	clear(confirm)
	o.spare = confirm[:0]
	more = o.buf != nil && o.err == nil
	if !more {
		o.writing = false
		o.endDrain()
	}
	return more
}

// endDrain lets Drain return. It is called with the lock.
func (o *Output) endDrain() {
	if o.idle != nil {
		close(o.idle)
		o.idle = nil
	}
}

// notifyWriters notifies the writers of messages, with consecutive messages of one writer together.
func (o *Output) notifyWriters(list []written) {
	for len(list) > 0 {
		o.notified = o.notified[:0]
		to := list[0].to
		for len(list) > 0 && list[0].to == to {
			o.notified = append(o.notified, list[0].slot)
			list = list[1:]
		}
		to.Written(o.notified)
	}
}

// Fail ends all writing. It does not close the connection.
func (o *Output) Fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
		close(o.failed)
	}
	o.endDrain()
}

// Drain waits until all gathered bytes are passed to the operating system, ctx ends, or the output has failed.
func (o *Output) Drain(ctx context.Context) {
	o.Flush()
	o.mu.Lock()
	if o.err != nil || !o.writing {
		o.mu.Unlock()
		return
	}
	if o.idle == nil {
		o.idle = make(chan struct{})
	}
	idle := o.idle
	o.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// Wait returns when all goroutines of the output have ended. The connection has been closed.
func (o *Output) Wait() { o.done.Wait() }

// Writes returns the number of completed writes; it may wrap.
func (o *Output) Writes() uint32 { return o.writes.Load() }

// Notify leaves a signal in a channel of capacity one.
func Notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

package library

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// grace is the time that a call of a library may continue after its context has ended.
const grace = 250 * time.Millisecond

// Sends is the table of the messages of a producer that the library has and that have not ended. Each of them ends
// once: by [Handover.End], or as Unknown by Close.
type Sends struct {
	// Answers ends when Close no longer waits for answers.
	Answers context.Context //nolint:containedctx // for calls that wait for an answer
	giveUp  context.CancelFunc

	op      string
	done    driver.Completions
	lost    atomic.Pointer[driver.Error]
	running sync.WaitGroup // calls of the library
	watches sync.WaitGroup
	closed  bool

	mu    sync.Mutex
	open  map[*Handover]struct{}
	empty chan struct{} // signalled when open is empty
}

// NewSends returns an empty table. The operation op is part of its errors: "send to queue://A".
func NewSends(op string, done driver.Completions) *Sends {
	s := &Sends{op: op, done: done, open: map[*Handover]struct{}{}, empty: make(chan struct{}, 1)}
	s.Answers, s.giveUp = context.WithCancel(context.Background())
	return s
}

// Lose notes why no further message can be sent, unless another reason is known.
func (s *Sends) Lose(why *driver.Error) { s.lost.CompareAndSwap(nil, why) }

// Lost returns that reason, or nil.
func (s *Sends) Lost() *driver.Error { return s.lost.Load() }

// Watch calls lost when over is closed, unless Close is called before.
func (s *Sends) Watch(over <-chan struct{}, lost func()) {
	s.watches.Go(func() {
		select {
		case <-over:
			lost()
		case <-s.Answers.Done():
		}
	})
}

// Handover is one message.
type Handover struct {
	sends  *Sends
	slot   driver.Slot
	result chan error  // result of Do
	told   atomic.Bool // result was sent
}

// Sent reports that the library has taken the message: Do returns nil, unless it has returned.
func (h *Handover) Sent() {
	if h.told.CompareAndSwap(false, true) {
		h.result <- nil
	}
}

// NotSent reports that nothing of the message has left: Do returns err. It returns false if Do has already returned
// nil, so that the caller must end the message.
func (h *Handover) NotSent(err error) bool {
	if !h.told.CompareAndSwap(false, true) {
		return false
	}
	h.sends.remove(h)
	h.result <- err
	return true
}

// End reports the outcome of the message, and that it was sent. Only the first call counts.
func (h *Handover) End(o driver.Outcome) {
	h.Sent()
	if h.sends.remove(h) {
		h.sends.done.Done(h.slot, o)
	}
}

// Do calls send, in a goroutine of its own because libraries write without regard for the context, and waits until send
// has called Sent, NotSent or End. If none of these calls has come by the time grace after the end of ctx, Do returns
// nil. If the message cannot be sent, since ctx has ended or because of [Sends.Lose], Do returns an error and does not
// call send.
func (s *Sends) Do(ctx context.Context, slot driver.Slot, send func(*Handover)) error {
	if lost := s.lost.Load(); lost != nil {
		return lost
	}
	if err := ctx.Err(); err != nil {
		return driver.Errorf(driver.ClassTimeout, s.op, "", "not sent: %w", err)
	}
	h := &Handover{sends: s, slot: slot, result: make(chan error, 1)}
	s.mu.Lock()
	s.open[h] = struct{}{}
	s.mu.Unlock()
	s.running.Go(func() { send(h) })
	select {
	case err := <-h.result:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-h.result:
		return err
	case <-timer.C:
	}
	if h.told.CompareAndSwap(false, true) {
		return nil
	}
	return <-h.result
}

// Close waits until all messages have ended. When ctx ends, it ends Answers and calls giveUp, and abort, which ends the
// connection, if calls of the library still run; messages that are still open end as Unknown. It returns false, and
// does nothing, when it was called before.
func (s *Sends) Close(ctx context.Context, giveUp, abort func()) bool {
	if s.closed {
		return false
	}
	s.closed = true
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.running.Wait()
		for len(s.left()) > 0 {
			<-s.empty
		}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		s.giveUp()
		giveUp()
		select {
		case <-ended:
		case <-time.After(grace):
			abort()
			s.running.Wait()
			s.abandon()
			<-ended
		}
	}
	s.giveUp()
	s.watches.Wait()
	return true
}

// left returns the messages that have not ended.
func (s *Sends) left() []*Handover {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}

// abandon ends all messages as Unknown.
func (s *Sends) abandon() {
	why := s.lost.Load()
	if why == nil {
		why = transport.NoAnswer(s.op, "")
	}
	for _, h := range s.left() {
		h.End(driver.Outcome{State: driver.Unknown, Class: why.Class, Err: why})
	}
}

// remove returns whether the message was in the table.
func (s *Sends) remove(h *Handover) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.open[h]
	delete(s.open, h)
	if len(s.open) == 0 {
		transport.Notify(s.empty)
	}
	return there
}

// settleGrace is the time that a settling call of a library may take when a consumer must end.
const settleGrace = time.Second

// Receiver runs the loop of a consumer on a library with settling calls that ignore the context.
type Receiver struct {
	// Over, unless it is nil, is closed when the connection has ended. Settling calls may then hang in the library, and
	// Run does not wait for them.
	Over <-chan struct{}
	// Why returns the error of an ended connection. It is set together with Over.
	Why func() error

	calls atomic.Int64 // beginnings and ends of settling calls: odd during one
}

// Settle makes a settling call. If need be, Run's abort ends it.
func (r *Receiver) Settle(call func()) {
	r.calls.Add(1)
	call()
	r.calls.Add(1)
}

// hangs reports whether the settling call that ran when calls was n is still running.
func (r *Receiver) hangs(n int64) bool { return n%2 == 1 && r.calls.Load() == n }

// Run calls next until it fails, or ctx ends, which is no failure. If a settling call lasts long beyond that, Run calls
// abort, which is to end the connection.
func (r *Receiver) Run(ctx context.Context, next func(context.Context) error, abort func()) error {
	receiving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(receiving, func() {
		n := r.calls.Load()
		time.AfterFunc(settleGrace, func() {
			if r.hangs(n) {
				abort()
			}
		})
	})()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for receiving.Err() == nil { // libraries do not look at it while they have messages
			if err := next(receiving); err != nil {
				stop(err)
			}
		}
	}()
	over, look, n := r.Over, (<-chan time.Time)(nil), int64(0)
	for waiting := true; waiting; {
		select {
		case <-over:
			over, look, n = nil, time.After(settleGrace), r.calls.Load()
		case <-look:
			if r.hangs(n) { // next neither delivers a message nor learns why the connection has ended
				stop(r.Why())
				waiting = false
			}
			look, n = time.After(settleGrace), r.calls.Load()
		case <-done:
			waiting = false
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(receiving)
}

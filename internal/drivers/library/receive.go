package library

import (
	"context"
	"sync/atomic"
	"time"
)

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

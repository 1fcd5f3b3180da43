package library

import (
	"context"
	"sync"
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

	begun, ended atomic.Int64 // calls that settle
	working      atomic.Int64 // goroutines of Run
}

// Settle makes a settling call. If need be, Run's abort ends it.
func (r *Receiver) Settle(call func()) {
	r.begun.Add(1)
	call()
	r.ended.Add(1)
}

// hangs reports whether the settling call with number begun is still running.
func (r *Receiver) hangs(begun int64) bool { return r.ended.Load() < begun && r.begun.Load() == begun }

// allHang reports whether all goroutines hang: none delivers a message, or learns why the connection has ended.
func (r *Receiver) allHang(begun int64) bool {
	working := r.working.Load() // read first: it only falls
	return r.hangs(begun) && begun-r.ended.Load() == working
}

// Run calls next, in so many goroutines, until it fails, or ctx ends, which is no failure. If a settling call lasts
// long beyond that, Run calls abort, which is to end the connection.
func (r *Receiver) Run(ctx context.Context, goroutines int, next func(context.Context) error, abort func()) error {
	receiving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(receiving, func() {
		begun := r.begun.Load()
		time.AfterFunc(settleGrace, func() {
			if r.hangs(begun) {
				abort()
			}
		})
	})()
	var working sync.WaitGroup
	goroutines = max(1, goroutines)
	r.working.Store(int64(goroutines))
	for range goroutines {
		working.Go(func() {
			defer r.working.Add(-1)
			for receiving.Err() == nil { // libraries do not look at it while they have messages
				if err := next(receiving); err != nil {
					stop(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		working.Wait()
	}()
	for over, look, begun := r.Over, (<-chan time.Time)(nil), int64(0); ; {
		select {
		case <-over:
			over, look, begun = nil, time.After(settleGrace), r.begun.Load()
			continue
		case <-look:
			if !r.allHang(begun) {
				look, begun = time.After(settleGrace), r.begun.Load()
				continue
			}
			stop(r.Why())
		case <-done:
		}
		break
	}
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(receiving)
}

package library

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// settleGrace is how long, when a consumer is to end, a call of a library that settles may take.
const settleGrace = time.Second

// Receiver runs the loop of a consumer on a library whose calls that settle do not look at a context.
type Receiver struct {
	begun, ended atomic.Int64 // such calls
}

// Settle makes a call that settles. Abort of Run ends it if need be.
func (r *Receiver) Settle(call func()) {
	r.begun.Add(1)
	call()
	r.ended.Add(1)
}

// Run calls next, in so many goroutines, until it fails, or ctx ends, which is no failure. It calls abort, which is
// to end the connection, if a call that settles goes on long after that.
func (r *Receiver) Run(ctx context.Context, goroutines int, next func(context.Context) error, abort func()) error {
	receiving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(receiving, func() {
		begun := r.begun.Load()
		time.AfterFunc(settleGrace, func() {
			if r.ended.Load() < begun && r.begun.Load() == begun {
				abort()
			}
		})
	})()
	var working sync.WaitGroup
	for range max(1, goroutines) {
		working.Go(func() {
			for receiving.Err() == nil { // libraries do not look at it while they have messages
				if err := next(receiving); err != nil {
					stop(err)
				}
			}
		})
	}
	working.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(receiving)
}

// Package library has the code that the drivers on client libraries share. Each of them uses its library as an
// application does: a call for each message, and the library's own connections, writes and credit. With --client they
// show whether the broker or the client library sets the limit.
package library

import (
	"context"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Features are those that drivers on libraries have for queues and topics.
func Features() driver.KindCapabilities {
	kind, _ := protocol.Features()
	kind.Transactions, kind.TransactedReceive, kind.Delay = false, false, false
	return kind
}

// Join returns a connection of the pool, unless check refuses it.
func Join[C transport.Shared](
	ctx context.Context, pool *transport.Pool[C], spec driver.Connection, check func(C) error,
) (*transport.Lease[C], error) {
	lease, err := pool.Acquire(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err = check(lease.Conn); err != nil {
		lease.Release(ctx)
	}
	return lease, err
}

// Sleep waits for d, or returns the error of ctx when it ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Call is [Bounded] for a call without a value.
func Call(ctx context.Context, f func() error) error {
	_, err := Bounded(ctx, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// Bounded calls f, which ignores contexts, and returns when ctx ends; f may continue for some seconds.
func Bounded[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		v, err := f()
		results <- result{v, err}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

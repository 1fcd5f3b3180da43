// Package library has the code that the drivers on client libraries share. Each of them uses its library as an
// application does: a call for each message, and the library's own connections, writes and credit. They are the answer
// to --client: is it the broker or the client library that sets the limit?
package library

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Broker is where a driver connects to.
type Broker struct {
	Protocol       *transport.Protocol
	Target         transport.Target
	TLS            driver.TLS
	ConnectTimeout time.Duration
}

// NewBroker checks the options that matter for connecting.
func NewBroker(p *transport.Protocol, opts *driver.OpenOptions) (Broker, error) {
	target, err := p.Check(*opts)
	return Broker{Protocol: p, Target: target, TLS: opts.TLS, ConnectTimeout: opts.ConnectTimeout}, err
}

// Dial opens a connection to the first host that lets us in, tried in that order. Open gets a connection
// to a host, encrypted if need be, for the library; if it fails, the connection is closed.
func Dial[C any](
	ctx context.Context, b *Broker, order []int,
	open func(ctx context.Context, host transport.Endpoint, conn net.Conn) (C, error),
) (C, error) {
	return transport.First(ctx, b.Target.Hosts, order, b.ConnectTimeout,
		func(ctx context.Context, host transport.Endpoint) (c C, err error) {
			conn, err := b.Protocol.DialPlain(ctx, host, b.Target.TLS, b.TLS)
			if err != nil {
				return c, err
			}
			if c, err = open(ctx, host, conn); err != nil {
				_ = conn.Close()
				return c, b.Protocol.ConnectError(host, err)
			}
			return c, nil
		})
}

// grace is how long a call of a library may go on when the context has ended in which it was made.
const grace = 250 * time.Millisecond

// Sends are the calls of a producer that send. Each has a goroutine of its own, because libraries write without a
// look at the context.
type Sends struct{ running sync.WaitGroup }

// Handover is one call.
type Handover struct {
	result chan error  // of Do
	told   atomic.Bool // it has one
}

// Sent says that the library has taken the message: Do returns nil, if it has not yet.
func (h *Handover) Sent() {
	if h.told.CompareAndSwap(false, true) {
		h.result <- nil
	}
}

// NotSent says that nothing of the message has left: Do returns err. It reports false if Do has returned nil already,
// so that the message is to be reported.
func (h *Handover) NotSent(err error) bool {
	if !h.told.CompareAndSwap(false, true) {
		return false
	}
	h.result <- err
	return true
}

// Do calls send, which has to call Sent or NotSent, and waits for that. If ctx ends long before, it returns nil.
func (s *Sends) Do(ctx context.Context, send func(*Handover)) error {
	h := &Handover{result: make(chan error, 1)}
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

// Wait waits until all calls have ended. When ctx ends, it calls giveUp, and, if calls go on, abort, which ends the
// connection.
func (s *Sends) Wait(ctx context.Context, giveUp, abort func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.running.Wait()
	}()
	select {
	case <-ended:
		return
	case <-ctx.Done():
		giveUp()
	}
	select {
	case <-ended:
	case <-time.After(grace):
		abort()
		<-ended
	}
}

// Bounded calls f, which does not look at a context and goes on for some seconds at most when ctx has ended.
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

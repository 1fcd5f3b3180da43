package engine

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/pkg/driver"
)

// reconnectingProducer is a producer that gets a new connection for a lost one. Send waits for the new connection.
type reconnectingProducer struct {
	*link[driver.Producer]
	load    *load.Producer  // calls Send
	present driver.Producer // current, for the sending goroutine
	opening chan error      // the outcome of opening another one; nil if none is being opened
	news    func()          // see [load.Mender]
	gone    atomic.Pointer[gone]
}

// gone is a connection that has ended while nothing was sent, and why.
type gone struct {
	producer driver.Producer
	why      error
}

// OnNews implements [load.Mender].
func (p *reconnectingProducer) OnNews(call func()) {
	p.news = call
	p.watch(p.present)
}

// watch lets Mend know of the end of a connection.
func (p *reconnectingProducer) watch(opened driver.Producer) {
	if w, ok := opened.(driver.Watched); ok {
		w.OnEnd(func(why error) {
			p.gone.Store(&gone{opened, why})
			p.news()
		})
	}
}

// Mend implements [load.Mender].
func (p *reconnectingProducer) Mend(ctx context.Context) error {
	if p.opening != nil {
		select {
		case err := <-p.opening:
			if err == nil { // no message waits for this connection
				p.outages.Ready(p.opened)
			}
			if err := p.takeOver(ctx, err); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	if g := p.gone.Load(); g != nil && g.producer == p.present && lostBy(g.why) {
		p.reopen(ctx, g.why)
	} else if g != nil && g.producer == p.present {
		return g.why
	}
	return nil
}

// reopen leaves the lost connection and begins to open another one.
func (p *reconnectingProducer) reopen(ctx context.Context, why error) {
	p.leave(ctx, why)
	opening := make(chan error, 1)
	go func() {
		err := p.comeBack(ctx, why)
		if err == nil {
			p.watch(p.current())
		}
		opening <- err
		p.news()
	}()
	p.opening = opening
}

// takeOver takes the outcome of opening another connection over.
func (p *reconnectingProducer) takeOver(ctx context.Context, err error) error {
	p.opening = nil
	switch {
	case err == nil:
		p.present = p.current()
	case ctx.Err() == nil && errors.Is(err, context.Canceled): // an earlier step ended meanwhile
		return nil
	}
	return err
}

// Send implements [driver.Producer].
func (p *reconnectingProducer) Send(ctx context.Context, m *driver.Message) error {
	for {
		if p.opening == nil {
			err := p.present.Send(ctx, m)
			if err == nil || ctx.Err() != nil || !lostBy(err) {
				return err
			}
			p.reopen(ctx, err)
		}
		if err := p.takeOver(ctx, <-p.opening); err != nil {
			return err
		}
		p.load.Restamp(m)
	}
}

// TrySend implements [driver.TrySender]. It leaves a lost connection to Send.
func (p *reconnectingProducer) TrySend(m *driver.Message) bool {
	if p.opening != nil {
		return false
	}
	try, ok := p.present.(driver.TrySender)
	return ok && try.TrySend(m)
}

// Flush implements [driver.Flusher]. A lost connection has no messages left to flush.
func (p *reconnectingProducer) Flush(ctx context.Context) error {
	f, ok := p.present.(driver.Flusher)
	if !ok {
		return nil
	}
	if err := f.Flush(ctx); err != nil && !lostBy(err) {
		return err
	}
	return nil
}

// reconnectingConsumer is a consumer that gets a new connection for a lost one.
type reconnectingConsumer struct{ *link[driver.Consumer] }

// Run implements [driver.Consumer].
func (c *reconnectingConsumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	watched := func(d *driver.Delivery) driver.Verdict {
		c.recordArrival(false)
		return deliver(d)
	}
	for {
		err := c.current().Run(ctx, watched)
		if err == nil || ctx.Err() != nil || !unreachable(err) { // no answer in time is no reason to end the run either
			return err
		}
		if err := c.reconnect(ctx, err); ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to stop
		} else if err != nil {
			return err
		}
	}
}

// Probe implements [driver.Prober].
func (c *reconnectingConsumer) Probe(ctx context.Context) error {
	c.mu.Lock()
	now, lost := c.now, c.lost
	c.mu.Unlock()
	if lost {
		return driver.Errorf(driver.ClassConnectionLost, "probe", "", "the consumer is not connected")
	}
	if p, ok := now.(driver.Prober); ok {
		return p.Probe(ctx)
	}
	return nil
}

package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/pkg/driver"
)

// finisher is a worker that is told whether its task is done.
type finisher interface{ finish(done bool) }

func newReconnectingProducer(l *producerLink, of *load.Producer) driver.Producer {
	p := &reconnectingProducer{producerLink: l, load: of, present: l.now, news: func() {}}
	if _, ok := l.now.(driver.Waiter); ok {
		return waitingProducer{p}
	}
	return p
}

func newReconnectingConsumer(l *consumerLink) driver.Consumer {
	c := &reconnectingConsumer{l}
	if _, ok := l.now.(driver.Waiter); ok {
		return waitingConsumer{c}
	}
	return c
}

// waitingProducer and waitingConsumer report their waits.
type (
	waitingProducer struct{ *reconnectingProducer }
	waitingConsumer struct{ *reconnectingConsumer }
)

// reconnectingProducer is a producer whose lost connection is replaced. Send waits for the new connection, or for as
// long as messages wait for one.
type reconnectingProducer struct {
	*producerLink
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
	var patience <-chan time.Time
	for {
		if p.opening == nil {
			err := p.present.Send(ctx, m)
			if err == nil || ctx.Err() != nil || !lostBy(err) {
				return err
			}
			patience = p.patience(patience)
			p.reopen(ctx, err)
		}
		patience = p.patience(patience)
		select {
		case err := <-p.opening:
			if err := p.takeOver(ctx, err); err != nil {
				return err
			}
			p.load.Restamp(m)
		case <-patience:
			p.load.Done(m.Slot, driver.Outcome{
				State: driver.Failed, Class: driver.ClassConnect,
				Err: driver.Errorf(driver.ClassConnect, "send", "", "not connected again within %s (timeout of the failover URL)",
					p.backoff.Patience),
			})
			return nil
		}
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

// patience returns what tells that the patience of a message is over, unless it has begun before; nil for never.
func (p *reconnectingProducer) patience(begun <-chan time.Time) <-chan time.Time {
	if begun != nil || p.backoff.Patience == 0 {
		return begun
	}
	return time.After(p.backoff.Patience)
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

// reconnectingConsumer is a consumer whose lost connection is replaced.
type reconnectingConsumer struct{ *consumerLink }

// Run implements [driver.Consumer].
func (c *reconnectingConsumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	watched := func(d *driver.Delivery) driver.Verdict {
		c.came(false)
		return deliver(d)
	}
	for {
		err := c.current().Run(ctx, watched)
		if err == nil || ctx.Err() != nil || !unreachable(err) { // no answer in time is no reason to end the run either
			return err
		}
		if err := c.again(ctx, err); ctx.Err() != nil {
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

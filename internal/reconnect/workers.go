package reconnect

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Producer is a producer that gets a new connection for a lost one. Send waits for the new connection.
type Producer struct {
	*link[driver.Producer]
	load    *load.Producer  // calls Send
	present driver.Producer // current, for the sending goroutine
	opening chan error      // the outcome of opening another one; nil if none is being opened
	news    func()          // see [load.Mender]
	gone    atomic.Pointer[gone]
}

// NewProducer returns a producer with a first connection, opened, and the ends of its messages. connect opens another
// connection, and arrived is called before its use.
func NewProducer(
	c *Config, opened driver.Producer, to *load.Producer, ends *Ends,
	connect func(ctx context.Context, order []int, done driver.Completions) (driver.Producer, error),
	arrived func(driver.Producer),
) *Producer {
	l := newLink(c, true, opened)
	ends.link = l
	l.open = func(ctx context.Context, order []int) (driver.Producer, func(), error) {
		following := &Ends{link: l, to: to}
		now, err := connect(ctx, order, following)
		return now, func() {
			ends.outage = l.outage
			ends.late.Store(true)
			ends = following
			arrived(now)
		}, err
	}
	return &Producer{link: l, load: to, present: opened, news: func() {}}
}

// gone is a connection that has ended while nothing was sent, and why.
type gone struct {
	producer driver.Producer
	why      error
}

// OnNews implements [load.Mender].
func (p *Producer) OnNews(call func()) {
	p.news = call
	p.watch(p.present)
}

// watch lets Mend know of the end of a connection.
func (p *Producer) watch(opened driver.Producer) {
	if w, ok := opened.(driver.Watched); ok {
		w.OnEnd(func(why error) {
			p.gone.Store(&gone{opened, why})
			p.news()
		})
	}
}

// Mend implements [load.Mender].
func (p *Producer) Mend(ctx context.Context) error {
	if p.opening != nil {
		select {
		case err := <-p.opening:
			if err == nil { // no message waits for this connection
				p.Outages.Ready(p.opened)
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
func (p *Producer) reopen(ctx context.Context, why error) {
	p.leave(why)
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
func (p *Producer) takeOver(ctx context.Context, err error) error {
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
func (p *Producer) Send(ctx context.Context, m *driver.Message) error {
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
func (p *Producer) TrySend(m *driver.Message) bool {
	if p.opening != nil {
		return false
	}
	try, ok := p.present.(driver.TrySender)
	return ok && try.TrySend(m)
}

// Flush implements [driver.Flusher]. A lost connection has no messages left to flush.
func (p *Producer) Flush(ctx context.Context) error {
	f, ok := p.present.(driver.Flusher)
	if !ok {
		return nil
	}
	if err := f.Flush(ctx); err != nil && !lostBy(err) {
		return err
	}
	return nil
}

// Consumer is a consumer that gets a new connection for a lost one.
type Consumer struct{ *link[driver.Consumer] }

// NewConsumer returns a consumer with a first connection, opened. connect opens another one, and arrived is called
// before its use.
func NewConsumer(
	c *Config, opened driver.Consumer, connect func(ctx context.Context, order []int) (driver.Consumer, error),
	arrived func(driver.Consumer),
) *Consumer {
	l := newLink(c, false, opened)
	l.open = func(ctx context.Context, order []int) (driver.Consumer, func(), error) {
		now, err := connect(ctx, order)
		return now, func() { arrived(now) }, err
	}
	return &Consumer{l}
}

// Run implements [driver.Consumer].
func (c *Consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	watched := func(d *driver.Delivery) driver.Verdict {
		c.recordArrival(false)
		return deliver(d)
	}
	for {
		err := c.current().Run(ctx, watched)
		if err == nil || ctx.Err() != nil || !Unreachable(err) { // no answer in time is no reason to end the run either
			return err
		}
		c.leave(err)
		if err := c.comeBack(ctx, err); ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to stop
		} else if err != nil {
			return err
		}
	}
}

// Probe implements [driver.Prober].
func (c *Consumer) Probe(ctx context.Context) error {
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

// Ends passes the ends of the messages of one connection on, and notes the ones of an outage.
type Ends struct {
	link   *link[driver.Producer]
	to     *load.Producer
	outage int         // in which this connection was lost; to be read after late
	late   atomic.Bool // another connection has followed: the ends of this one tell nothing about that
}

// NewEnds returns the ends of the first connection, for [NewProducer].
func NewEnds(to *load.Producer) *Ends { return &Ends{to: to} }

// Done implements [driver.Completions].
func (w *Ends) Done(slot driver.Slot, o driver.Outcome) {
	if o.State == driver.Unknown {
		w.unknown([]driver.Slot{slot}, o)
		return
	}
	w.to.Done(slot, o)
	w.noteEnd(&o)
}

// DoneAll implements [driver.Completions].
func (w *Ends) DoneAll(slots []driver.Slot, o driver.Outcome) {
	if o.State == driver.Unknown {
		w.unknown(slots, o)
		return
	}
	w.to.DoneAll(slots, o)
	w.noteEnd(&o)
}

func (w *Ends) noteEnd(o *driver.Outcome) {
	if o.State == driver.Accepted && !w.late.Load() {
		w.link.recordArrival(true)
	}
}

// unknown ends messages without an answer. Messages that a time-out ended before are not the outage's.
func (w *Ends) unknown(slots []driver.Slot, o driver.Outcome) {
	var outage int
	if w.late.Load() {
		outage = w.outage
	} else {
		outage = w.link.lostWith(&o)
	}
	n := w.to.InDoubt(outage, slots, o)
	w.link.Outages.InDoubt(outage, n)
}

// lostWith returns the outage in which messages ended without an answer; 0 if that is not because the connection was
// lost.
func (l *link[T]) lostWith(o *driver.Outcome) (outage int) {
	l.mu.Lock()
	lost, done := l.lost, l.done
	l.mu.Unlock()
	err := o.Err
	if !lost && (err == nil || !lostBy(err)) {
		return 0
	}
	if err == nil {
		err = driver.Errorf(driver.ClassConnectionLost, "", "", "the connection was lost")
	}
	return l.Outages.Lost(l.Name, l.produces, done, err, time.Now())
}

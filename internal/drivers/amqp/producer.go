package amqp

import (
	"context"
	"sync"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// producer is a [driver.Producer]: a sending link in a session of its own.
//
// A message is encoded once per variant; a send copies it into the connection's buffer with its delivery ID and tag,
// time and ID in their places. Deliveries are in unsettled until the broker's disposition, which may be of a whole
// range.
type producer struct {
	op      string
	lease   *transport.Lease[*connection]
	session *session
	link    link
	done    driver.Completions
	kinds   []*wire.Template // by variant
	origin  []byte           // the ID of messages that have none of their own; nil without
	settled bool             // at-most-once
	tx      *transactions    // nil without

	socket, leave *driver.Meter // waits for the connection to take more, and for credit
	granted       chan struct{} // credit or window may have come
	idText        [driver.MaxIDText]byte
	tag           [4]byte
	scratch       []byte // a message of several frames

	// Guarded by session.mu.
	unsettled *unsettled
	err       error         // why no more can be sent
	drained   chan struct{} // closed when nothing is unsettled, if Close waits for it

	ending sync.Mutex // one goroutine reports ends at a time, with slots
	slots  []driver.Slot
	closed bool
}

// Producer implements [driver.Driver].
func (d *amqpDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	op := "open a producer on " + spec.Destination.String()
	lease, err := d.pool.Acquire(ctx, spec.Connection)
	if err != nil {
		return nil, err
	}
	p := &producer{
		op: "send to " + spec.Destination.String(), lease: lease, done: done,
		settled: d.cfg.Options.Settle == settleAtMostOnce,
		socket:  driver.NewMeter(), leave: driver.NewMeter(), granted: make(chan struct{}, 1),
		unsettled: newUnsettled(spec.MaxPending),
	}
	if spec.CommitInterval > 0 {
		p.tx = newTransactions(p, &spec)
	}
	if err := p.open(ctx, op, &spec); err != nil {
		err = lease.Conn.explain(op, err)
		p.quit(ctx)
		return nil, err
	}
	return p, nil
}

func (p *producer) open(ctx context.Context, op string, spec *driver.ProducerSpec) (err error) {
	c, opts := p.lease.Conn, &p.lease.Conn.driver.cfg.Options
	if spec.CommitInterval > 0 && p.settled {
		return driver.Errorf(driver.ClassUnsupported, op, "leave out -o settle=at-most-once or --commit-interval",
			"transactions are confirmed by their commit")
	}
	if err := c.checkProducer(op, spec, opts); err != nil {
		return err
	}
	if err := c.prepareSend(ctx, op, spec, opts); err != nil {
		return err
	}
	if err := p.prepare(spec); err != nil {
		return err
	}
	if p.session, err = c.beginSession(ctx, false); err != nil {
		return err
	}
	p.link.producer = p
	attach := wire.Attach{
		Name: spec.Name, Role: wire.RoleSender, InitialDeliveryCount: wire.Some[uint32](0),
		Source: wire.Terminus{Kind: wire.DescSource, Address: wire.Some(spec.Name)},
		Target: wire.Terminus{
			Kind: wire.DescTarget, Address: wire.Some(c.address(spec.Destination)), Durable: c.durability(),
			Capabilities: []string{spec.Destination.Kind.String()},
		},
	}
	if p.settled {
		attach.SenderSettleMode = wire.SenderSettled
	}
	if err := p.session.attach(ctx, &p.link, &attach); err != nil {
		return err
	}
	if mode := p.link.peer.sendSettle; mode != attach.SenderSettleMode && mode != wire.SenderMixed {
		return driver.Errorf(driver.ClassUnsupported, op, "use the other value of -o settle",
			"the broker does not agree to settle=%s", opts.Settle)
	}
	if p.tx != nil {
		return p.tx.begin(ctx, spec.Name)
	}
	return nil
}

// prepare encodes the messages.
func (p *producer) prepare(spec *driver.ProducerSpec) error {
	if spec.Origin != (driver.ID{}) {
		p.origin = spec.Origin.Append(nil)
	}
	for i := range spec.Variants {
		v := &spec.Variants[i]
		content := wire.Content{
			Header:  wire.Header{Durable: spec.Persistent},
			TimeKey: driver.TimeProperty, IDKey: driver.IDProperty, Body: v.Body, Text: v.Text,
		}
		if v.Priority >= 0 {
			content.Header.Priority = wire.Some(uint8(min(v.Priority, 9))) //nolint:gosec // 0 to 9
		}
		if ms := spec.TTL.Milliseconds(); spec.TTL > 0 {
			content.Header.TTL = wire.Some(uint32(min(max(ms, 1), 1<<32-1))) //nolint:gosec // in range
		}
		if spec.Delay > 0 {
			content.Annotations = []wire.Property{{Key: "x-opt-delivery-delay", Value: spec.Delay.Milliseconds()}}
		}
		if v.Group != "" {
			content.Properties.GroupID = []byte(v.Group)
		}
		for _, property := range v.Properties {
			content.Application = append(content.Application, wire.Property{Key: property.Key, Value: property.Value})
		}
		t, err := wire.NewTemplate(&content)
		if err != nil {
			return &driver.Error{Class: driver.ClassUnsupported, Hint: "choose other --property values", Err: err}
		}
		p.kinds = append(p.kinds, t)
	}
	return nil
}

// settle takes the broker's outcome of a range of deliveries. In a transaction an acceptance is none before the
// commit.
func (p *producer) settle(first, last uint32, o driver.Outcome) {
	if p.settled || p.tx != nil && o.State == driver.Accepted {
		return
	}
	p.end(first, last, o)
}

// end ends the deliveries of a range.
func (p *producer) end(first, last uint32, o driver.Outcome) {
	p.endThose(func() { p.slots = p.unsettled.take(p.slots, first, last) }, o)
}

// endThose ends the deliveries that take, which is called with the session's lock, appends to slots.
func (p *producer) endThose(take func(), o driver.Outcome) {
	p.ending.Lock()
	defer p.ending.Unlock()
	s := p.session
	p.slots = p.slots[:0]
	s.mu.Lock()
	take()
	s.mu.Unlock()
	if len(p.slots) > 0 {
		p.done.DoneAll(p.slots, o)
	}
	s.mu.Lock()
	if p.drained != nil && p.unsettled.n == 0 {
		close(p.drained)
		p.drained = nil
	}
	s.mu.Unlock()
}

// abandon ends all unsettled messages, because nothing more comes.
func (p *producer) abandon(why error) {
	if why == nil {
		why = transport.ErrClosed
	}
	e := p.lease.Conn.explain(p.op, why)
	p.session.mu.Lock()
	if p.err == nil {
		p.err = e
	}
	p.session.mu.Unlock()
	p.endAll(driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(e), Err: e})
	if p.tx != nil {
		p.tx.tell()
	}
	p.wake()
}

// endAll ends all deliveries that have not ended.
func (p *producer) endAll(o driver.Outcome) {
	p.endThose(func() { p.slots = p.unsettled.takeAll(p.slots) }, o)
}

// Host implements [driver.Located].
func (p *producer) Host() string { return p.lease.Conn.host }

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits {
	w := p.lease.Conn.waits()
	w.Credit, w.Socket = p.leave.Wait(), p.socket.Wait()
	return w
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	p.closed = true
	c, s := p.lease.Conn, p.session
	if p.tx != nil && ctx.Err() == nil {
		_ = p.tx.flush(ctx) // messages that cannot be committed end as unknown
	}
	c.out.Flush()
	s.mu.Lock()
	var drained chan struct{}
	if p.unsettled.n > 0 {
		drained = make(chan struct{})
		p.drained = drained
	}
	s.mu.Unlock()
	if drained != nil {
		select {
		case <-drained:
		case <-c.Over():
		case <-ctx.Done():
		}
	}
	p.quit(ctx)
	return nil
}

// quit reports deliveries that have no end yet, ends session and link, and gives the connection back.
func (p *producer) quit(ctx context.Context) {
	if s := p.session; s != nil {
		var err error = driver.Errorf(driver.ClassTimeout, p.op, "is the broker overloaded or paused?",
			"the broker had not answered when the producer closed")
		if why := p.lease.Conn.Why(); why != nil {
			err = p.lease.Conn.explain(p.op, why)
		}
		p.endAll(driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(err), Err: err})
		if p.lease.Conn.detaches() && ctx.Err() == nil {
			_ = s.detach(ctx, &p.link) // the end of the session does it as well
		}
		s.close(ctx)
	}
	p.lease.Release(ctx)
}

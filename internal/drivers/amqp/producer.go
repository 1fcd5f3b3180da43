package amqp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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
		op: "send to " + spec.Destination.String(), lease: lease, done: done, settled: d.cfg.opts.Settle == settleAtMostOnce,
		socket: driver.NewMeter(), leave: driver.NewMeter(), granted: make(chan struct{}, 1),
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
	c, opts := p.lease.Conn, &p.lease.Conn.driver.cfg.opts
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

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := ctx.Err(); err != nil {
		return driver.Errorf(driver.ClassTimeout, p.op, "", "not sent: %w", err)
	}
	t, id := p.kinds[m.Variant], p.origin
	if m.ID != (driver.ID{}) {
		id = m.ID.Append(p.idText[:0])
	}
	size := t.Size(len(id))
	if limit := p.link.peer.maxMessage; limit > 0 && uint64(size) > limit {
		return driver.Errorf(driver.ClassTooLarge, p.op, "send smaller messages or raise the broker's limit",
			"the message has %d bytes, and the broker takes no more than %d", size, limit)
	}
	var state []byte
	if p.tx != nil {
		var err error
		if state, err = p.tx.enter(ctx); err != nil {
			return p.sendError(ctx, err)
		}
	}
	var err error
	if frameHead+len(state)+size <= p.lease.Conn.maxFrame {
		err = p.sendFrame(ctx, m, t, id, state)
	} else {
		err = p.sendFrames(ctx, m, t, id, state)
	}
	if err != nil {
		return p.sendError(ctx, err)
	}
	if p.tx != nil {
		p.tx.commitFull(ctx, m.More)
	}
	return nil
}

// frameHead is how many bytes the head of a transfer has at most, without a delivery state.
const frameHead = 64

// sendFrame sends a message that fits one frame.
func (p *producer) sendFrame(ctx context.Context, m *driver.Message, t *wire.Template, id, state []byte) error {
	c, s := p.lease.Conn, p.session
	for {
		if err := p.awaitLeave(ctx); err != nil {
			return err
		}
		b, err := c.out.Lock(ctx, p.socket)
		if err != nil {
			return err
		}
		s.mu.Lock()
		if p.err != nil || p.link.credit == 0 || s.room == 0 { // taken back meanwhile
			s.mu.Unlock()
			c.out.Unlock(b, false)
			continue
		}
		head := p.transfer(m.Slot, state, false)
		s.nextOut++
		s.room--
		at := len(b)
		b = t.Append(head.AppendHead(b, s.channel), m.Time, id)
		wire.EndFrame(b, at)
		if p.settled {
			c.out.Confirm(p, m.Slot)
		}
		if p.tx != nil {
			p.tx.add(head.DeliveryID.V)
		}
		s.mu.Unlock()
		c.out.Unlock(b, m.More || p.tx != nil)
		return nil
	}
}

// transfer begins a delivery. The session's lock is held.
func (p *producer) transfer(slot driver.Slot, state []byte, more bool) wire.Transfer {
	p.link.deliveryCount++
	p.link.credit--
	id := p.unsettled.add(slot)
	binary.BigEndian.PutUint32(p.tag[:], id)
	return wire.Transfer{
		Handle: p.link.handle, DeliveryID: wire.Some(id), DeliveryTag: p.tag[:], MessageFormat: wire.Some[uint32](0),
		Settled: p.settled, More: more, State: state,
	}
}

// sendFrames sends a message of several frames. Once the first has left, the others have to follow, or the broker is
// told to forget the delivery.
func (p *producer) sendFrames(ctx context.Context, m *driver.Message, t *wire.Template, id, state []byte) error {
	c, s := p.lease.Conn, p.session
	p.scratch = t.Append(p.scratch[:0], m.Time, id)
	var head wire.Transfer
	for rest := p.scratch; len(rest) > 0; {
		first := len(rest) == len(p.scratch)
		piece := rest[:min(len(rest), c.maxFrame-frameHead-len(state))]
		if err := p.awaitWindow(ctx, first); err != nil {
			return p.abort(err, first)
		}
		b, err := c.out.Lock(ctx, p.socket)
		if err != nil {
			return p.abort(err, first)
		}
		s.mu.Lock()
		if p.err != nil || s.room == 0 || first && p.link.credit == 0 {
			s.mu.Unlock()
			c.out.Unlock(b, false)
			continue
		}
		if first {
			head = p.transfer(m.Slot, state, true)
		} else {
			head = wire.Transfer{Handle: p.link.handle, Settled: p.settled}
		}
		rest = rest[len(piece):]
		last := len(rest) == 0
		head.More = !last
		s.nextOut++
		s.room--
		at := len(b)
		b = append(head.AppendHead(b, s.channel), piece...)
		wire.EndFrame(b, at)
		if last && p.settled {
			c.out.Confirm(p, m.Slot)
		}
		if last && p.tx != nil {
			p.tx.add(p.unsettled.next - 1)
		}
		s.mu.Unlock()
		c.out.Unlock(b, !last || m.More || p.tx != nil)
	}
	if cap(p.scratch) > maxScratch {
		p.scratch = nil
	}
	return nil
}

// maxScratch is the largest message that is kept in memory for the next one.
const maxScratch = 1 << 20

// abort ends a delivery of which frames may have left: the rest does not follow, so that it is never delivered, and
// nothing more can be sent over the link. If the delivery has ended already, by an early answer of the broker or with
// the connection, that is its end, and Send must not fail.
func (p *producer) abort(err error, first bool) error {
	if first {
		return err
	}
	s := p.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.err == nil {
		p.err = driver.Errorf(driver.ClassTimeout, "", "a run that goes on would open another producer",
			"a message was given up between its frames")
	}
	if !p.unsettled.undo() {
		return nil
	}
	return err
}

// awaitLeave waits until a delivery may be sent.
func (p *producer) awaitLeave(ctx context.Context) error { return p.awaitWindow(ctx, true) }

// awaitWindow waits until a frame may be sent, and with delivery, until there is credit as well.
func (p *producer) awaitWindow(ctx context.Context, delivery bool) error {
	s := p.session
	free := func() (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.room > 0 && (!delivery || p.link.credit > 0), p.err
	}
	if ok, err := free(); ok || err != nil {
		return err
	}
	p.lease.Conn.out.Flush() // what was to wait for this message waits no longer
	p.leave.Begin()
	defer p.leave.End()
	for {
		select {
		case <-p.granted:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errNoLeave, ctx.Err())
		}
		if ok, err := free(); ok || err != nil {
			return err
		}
	}
}

// errNoLeave is why a send that waits is given up.
var errNoLeave = errors.New("the broker granted no credit to send")

// wake lets a send that waits look again.
func (p *producer) wake() {
	select {
	case p.granted <- struct{}{}:
	default:
	}
}

func (p *producer) sendError(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return driver.Errorf(driver.ClassTimeout, p.op,
			"the broker holds senders back: look for a full address, a full disk or a blocked producer on its console", "%w",
			err)
	}
	return p.lease.Conn.explain(p.op, err)
}

// Flush implements [driver.Flusher].
func (p *producer) Flush(ctx context.Context) error {
	if p.tx != nil && !p.closed {
		if err := p.tx.flush(ctx); err != nil {
			return p.sendError(ctx, err)
		}
	}
	p.lease.Conn.out.Flush()
	return nil
}

// Written implements [transport.Writer]: settled messages end when they are passed to the operating system, in the
// order in which they were sent.
func (p *producer) Written(slots []driver.Slot) {
	p.session.mu.Lock()
	first := p.unsettled.from
	p.session.mu.Unlock()
	p.end(first, first+uint32(len(slots))-1, driver.Outcome{}) //nolint:gosec // a serial number
}

// settle takes what the broker says of the deliveries of a range. In a transaction an acceptance is none before the
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

// abandon ends all that is unsettled, because nothing more comes.
func (p *producer) abandon(why error) {
	if why == nil {
		why = errClosed
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
		case <-c.failed:
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
		if why := p.lease.Conn.why(); why != nil {
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

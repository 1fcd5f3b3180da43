package amqp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := ctx.Err(); err != nil {
		return driver.Errorf(driver.ClassTimeout, p.op, "", "not sent: %w", err)
	}
	t, id := p.kinds[m.Variant], p.idOf(m)
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
		b = p.appendFrame(b, m, t, id, state)
		if p.settled {
			c.out.Confirm(p, m.Slot)
		}
		if p.tx != nil {
			p.tx.add(p.unsettled.next - 1)
		}
		s.mu.Unlock()
		c.out.Unlock(b, m.More || p.tx != nil)
		return nil
	}
}

// appendFrame appends a message that fits one frame. The session's lock is held; the link has credit and the session a
// window.
func (p *producer) appendFrame(b []byte, m *driver.Message, t *wire.Template, id, state []byte) []byte {
	s, at := p.session, len(b)
	head := p.transfer(m.Slot, state, false)
	s.nextOut++
	s.room--
	b = t.Append(head.AppendHead(b, s.channel), m.Time, id)
	wire.EndFrame(b, at)
	return b
}

// TrySend implements [driver.TrySender]. Messages of transactions and settled ones are left to Send: the end of the
// former is that of their transaction, and the latter end while they are written.
func (p *producer) TrySend(m *driver.Message) bool {
	c, s := p.lease.Conn, p.session
	t, id := p.kinds[m.Variant], p.idOf(m)
	size := t.Size(len(id))
	limit := p.link.peer.maxMessage
	if p.tx != nil || p.settled || limit > 0 && uint64(size) > limit || frameHead+size > c.maxFrame {
		return false
	}
	b, ok := c.out.TryLock()
	if !ok {
		return false
	}
	s.mu.Lock()
	ok = p.err == nil && p.link.credit > 0 && s.room > 0
	if ok {
		b = p.appendFrame(b, m, t, id, nil)
	}
	s.mu.Unlock()
	c.out.Unlock(b, m.More)
	return ok
}

// idOf returns the ID that a message carries, valid until the next call; nil for none.
func (p *producer) idOf(m *driver.Message) []byte {
	if m.ID == (driver.ID{}) {
		return p.origin
	}
	return m.ID.Append(p.idText[:0])
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
	p.lease.Conn.out.Flush() // earlier messages wait for this one no longer
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

// errNoLeave is the reason for giving up a send that waits.
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

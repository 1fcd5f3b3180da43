package amqp

import (
	"context"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := ctx.Err(); err != nil {
		return driver.Errorf(driver.ClassTimeout, p.op, "", "not sent: %w", err)
	}
	t, id := p.kinds[m.Variant], p.idOf(m)
	size := t.Size(len(id), p.propertiesOf(m), m.Values...)
	if p.tooLarge(size) {
		return driver.Errorf(driver.ClassTooLarge, p.op, protocol.HintSmaller,
			"the message has %d bytes, and the broker takes no more than %d", size, p.peer.MaxMessageSize)
	}
	var state []byte
	var err error
	if p.tx != nil {
		state, err = p.tx.enter(ctx)
	}
	if err == nil {
		err = p.send(ctx, m, t, id, state)
	}
	if err != nil {
		return transport.SendError(ctx, p.op, err)
	}
	if p.tx != nil {
		p.tx.commitFull(ctx, m.More)
	}
	return nil
}

// tooLarge reports whether a message of that size is larger than the broker takes.
func (p *producer) tooLarge(size int) bool {
	return p.peer.MaxMessageSize > 0 && uint64(size) > p.peer.MaxMessageSize
}

const (
	// frameHead is the largest head of a transfer in bytes, without a delivery state.
	frameHead = 64
	// maxScratch is the largest message buffer that is kept for the next message.
	maxScratch = 1 << 20
)

// send sends a message. If it needs several frames: once the first has left, the others have to follow.
func (p *producer) send(ctx context.Context, m *driver.Message, t *wire.Template, id, state []byte) error {
	room := p.lease.Conn.maxFrame - frameHead - len(state)
	whole := t.Size(len(id), p.own, m.Values...) <= room
	var rest []byte
	if !whole {
		p.scratch = t.Append(p.scratch[:0], m.Time, id, m.Group, p.own, m.Values...)
		copy(p.scratch[len(p.scratch)-len(m.Body):], m.Body)
		rest = p.scratch
	}
	for first, last := true, false; !last; first = false {
		b, err := p.lock(ctx, first)
		if err != nil {
			return p.abort(err, first)
		}
		piece := rest[:min(len(rest), room)]
		rest = rest[len(piece):]
		last = len(rest) == 0
		if whole {
			b = p.appendWhole(b, m, t, id, state)
		} else {
			b = p.appendPiece(b, m, piece, state, first, last)
		}
		if last && p.settled {
			p.lease.Conn.Out.Confirm(p, m.Slot)
		}
		if last && p.tx != nil {
			p.tx.filling.add(uint32(p.unsettled.Next - 1)) //nolint:gosec // serial
		}
		p.unlock(b, !last || m.More || p.tx != nil)
	}
	if cap(p.scratch) > maxScratch {
		p.scratch = nil
	}
	return nil
}

// appendWhole appends a message that fits one frame.
func (p *producer) appendWhole(b []byte, m *driver.Message, t *wire.Template, id, state []byte) []byte {
	at, head := len(b), p.beginDelivery(p.settled, state)
	p.addUnsettled(head.DeliveryID.V, m.Slot)
	b = t.Append(head.AppendHead(b, p.s.channel), m.Time, id, m.Group, p.own, m.Values...)
	copy(b[len(b)-len(m.Body):], m.Body) // it is at the end, and as long as that of the variant
	p.endFrame(b, at)
	return b
}

// appendPiece appends one frame of a message with several.
func (p *producer) appendPiece(b []byte, m *driver.Message, piece, state []byte, first, last bool) []byte {
	at, head := len(b), wire.Transfer{Handle: p.handle, Settled: p.settled}
	if first {
		head = p.beginDelivery(p.settled, state)
		p.addUnsettled(head.DeliveryID.V, m.Slot)
	}
	head.More = !last
	b = append(head.AppendHead(b, p.s.channel), piece...)
	p.endFrame(b, at)
	return b
}

// TrySend implements [driver.TrySender]. It leaves transactional messages to Send, since they end with their
// transaction, and settled messages, since they end while they are written.
func (p *producer) TrySend(m *driver.Message) bool {
	out, t, id := p.lease.Conn.Out, p.kinds[m.Variant], p.idOf(m)
	size := t.Size(len(id), p.propertiesOf(m), m.Values...)
	if p.tx != nil || p.settled || p.tooLarge(size) || frameHead+size > p.lease.Conn.maxFrame {
		return false
	}
	b, ok := out.TryLock()
	if !ok {
		return false
	}
	p.s.mu.Lock()
	if ok = p.maySend(true); ok {
		b = p.appendWhole(b, m, t, id, nil)
	}
	p.unlock(b, m.More)
	return ok
}

// idOf returns the ID of a message, valid until the next call; nil for none.
func (p *producer) idOf(m *driver.Message) []byte {
	if m.ID == (driver.ID{}) {
		return p.origin
	}
	return m.ID.Append(p.idText[:0])
}

// abort ends a delivery after some of its frames. The rest does not follow, so the broker never delivers it, and the
// link is no longer usable. If the delivery has ended already, by an early answer of the broker or with the connection,
// its outcome is reported, and Send must not fail.
func (p *producer) abort(err error, first bool) error {
	if first {
		return err
	}
	p.stop(driver.Errorf(driver.ClassTimeout, "", "a run that goes on would open another producer",
		"a message was given up between its frames"))
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if !p.unsettled.Remove(p.unsettled.Next - 1).open {
		return nil
	}
	return err
}

// Flush implements [driver.Flusher].
func (p *producer) Flush(ctx context.Context) error {
	if p.tx != nil && !p.closed {
		if err := p.tx.flush(ctx); err != nil {
			return transport.SendError(ctx, p.op, err)
		}
	}
	p.lease.Conn.Out.Flush()
	return nil
}

// Written implements [transport.Writer]: settled messages end when they are passed to the operating system, in the
// order of their sends.
func (p *producer) Written(slots []driver.Slot) {
	p.s.mu.Lock()
	first := uint32(p.unsettled.First) //nolint:gosec // serial
	p.s.mu.Unlock()
	p.finish(first, first+uint32(len(slots))-1, driver.Outcome{}) //nolint:gosec // a serial number
}

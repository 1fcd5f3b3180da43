package rocketmq

import (
	"context"
	"encoding/binary"
	"encoding/hex"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := ctx.Err(); err != nil {
		return driver.Errorf(driver.ClassTimeout, p.op, "", "not sent: %w", err)
	}
	if p.batch != nil {
		return p.batch.add(ctx, m)
	}
	k := &p.kinds[m.Variant]
	q, err := p.queue(k)
	if err != nil {
		return err
	}
	p.header(q, k, m)
	synchronous := p.opts.Send == sendSync
	if synchronous {
		select {
		case <-p.synced: // of a Send that did not wait to the end
		default:
		}
	}
	more := m.More && !synchronous
	p.hold(q.conn)
	p.inFlight.Add(1)
	e := call{to: p, arg: uint64(m.Slot), limit: p.limit}
	if p.opts.Send == sendOneWay {
		e.oneWay, e.limit = true, unlimited
	}
	if err = q.conn.submit(ctx, p.socket, p.head, k.body, more, e); err != nil {
		p.inFlight.Add(-1)
		return wrap(p.op, err)
	}
	if !more {
		p.held = nil
	}
	if synchronous {
		p.answers.Begin()
		select {
		case <-p.synced:
		case <-ctx.Done(): // Done will follow
		}
		p.answers.End()
	}
	return nil
}

// hold notes that something is about to be sent that may wait for more on the same connection.
func (p *producer) hold(c *conn) {
	if p.held != c {
		p.letGo()
		p.held = c
	}
}

// letGo lets out the messages that wait for more.
func (p *producer) letGo() {
	if p.held != nil {
		p.held.out.Flush()
		p.held = nil
	}
}

// Flush implements [driver.Flusher].
func (p *producer) Flush(ctx context.Context) error {
	if p.batch != nil {
		p.batch.flush(ctx)
	}
	p.letGo()
	return nil
}

// queue returns the next queue whose broker is there, or that of the kind's group, chosen as other clients would.
func (p *producer) queue(k *kind) (*sendQueue, error) {
	if k.group != "" {
		q := &p.home[k.hash%uint32(len(p.home))]
		if err := q.conn.Why(); err != nil {
			return nil, wrap(p.op, err)
		}
		return q, nil
	}
	list := *p.queues.Load()
	for range list {
		if p.next >= len(list) {
			p.next = 0
		}
		q := &list[p.next]
		p.next++
		if !q.conn.Dead() {
			return q, nil
		}
	}
	return nil, wrap(p.op, list[0].conn.Why())
}

// header builds the header of a single message in p.head.
func (p *producer) header(q *sendQueue, k *kind, m *driver.Message) {
	b := append(p.head[:0], q.prefix...)
	b = wire.AppendInt(b, "g", m.Time/1000) // the born time is in milliseconds
	b = wire.AppendField(b, "h", "0")       // flag
	b, at := wire.OpenField(b, "i")
	b = p.appendProperties(b, k, m)
	wire.CloseField(b, at)
	b = append(b, q.suffix...)
	b = p.sign.Sign(b, k.body)
	wire.EndFrame(b, len(k.body))
	p.head = b
}

// appendProperties appends the properties of a message.
func (p *producer) appendProperties(b []byte, k *kind, m *driver.Message) []byte {
	b = append(b, k.properties...)
	b = wire.AppendIntProperty(b, driver.TimeProperty, m.Time)
	if id := m.ID; id != (driver.ID{}) {
		id.Delay = max(id.Delay, p.delay.Milliseconds())
		b = append(id.Append(append(append(b, driver.IDProperty...), wire.NameEnd)), wire.PropertyEnd)
	}
	if p.tx != nil {
		b = wire.AppendProperty(b, propPlan, p.tx.plan(m.Slot))
	}
	// The unique key, without which brokers and tools cannot name the message.
	p.counter++
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], p.counter)
	hex.Encode(p.id[idSeed:], n[2:])
	return wire.AppendProperty(b, wire.PropUniqueKey, p.id[:])
}

// answer takes the answer to a single message.
func (p *producer) answer(arg uint64, r *reply) {
	slot, o := driver.Slot(arg), p.outcome(r)
	if p.tx != nil && o.State == driver.Accepted {
		o.Withheld = p.tx.half(slot, r)
	}
	p.done.Done(slot, o)
	if p.opts.Send == sendSync {
		select {
		case p.synced <- struct{}{}:
		default: // its Send has given up waiting
		}
	}
	p.settled(1)
}

func (p *producer) outcome(r *reply) driver.Outcome {
	if r.err == nil && r.Code == wire.ResSuccess {
		return driver.Outcome{}
	}
	return outcome(p.op, r)
}

// settled counts sends that have ended.
func (p *producer) settled(n int64) {
	if p.inFlight.Add(-n) == 0 && p.closing.Load() {
		select {
		case p.idle <- struct{}{}:
		default:
		}
	}
}

package stomp

import (
	"context"
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// take delivers or holds a message. The reader calls it.
func (k *consumer) take(m *message) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.state == stateHolding && k.bytes > 0 && k.bytes+len(m.Body)+len(m.ack)+heldSize > holdLimit {
		k.mu.Unlock()
		select {
		case <-k.unheld:
		case <-k.conn.Over():
		}
		k.mu.Lock()
		if k.conn.Dead() {
			return transport.ErrClosed
		}
	}
	if m.encoded && m.ID != (driver.ID{}) && m.ID.Number != driver.Unnumbered && k.fault == nil {
		k.fault = driver.Errorf(driver.ClassUnsupported, "",
			"set transport.transformer=jms on the AMQP connector (activemq.xml: transportConnector name=\"amqp\") of ActiveMQ "+
				"Classic",
			"the broker delivers AMQP messages in their AMQP encoding, so that no body is the one that was sent")
		notify(k.arrived)
	}
	if k.fault != nil {
		return nil // not acknowledged: it stays with the broker
	}
	if k.state == stateDirect && k.holds() {
		k.settle() // from here on Run delivers
		k.state = stateHolding
	}
	switch k.state {
	case stateDirect:
		k.handle(&m.Delivery, m.ack)
		if k.unacked > 0 && !k.listed {
			k.listed = true
			k.conn.acking = append(k.conn.acking, k)
		}
	case stateHolding:
		k.hold(m)
	}
	return nil
}

// hold keeps a copy of a message.
func (k *consumer) hold(f *message) {
	n := len(k.held)
	if n < cap(k.held) {
		k.held = k.held[:n+1]
	} else {
		k.held = append(k.held, heldMessage{})
	}
	m := &k.held[n]
	if len(f.Body) > max(keptText, cap(m.text)) {
		m.text, k.large = k.large, nil
	}
	m.text = append(append(m.text[:0], f.Body...), f.ack...)
	m.body = len(f.Body)
	m.delivery = f.Delivery
	m.delivery.Body = m.text[:m.body:m.body]
	k.bytes += len(m.text) + heldSize
	if n == 0 {
		notify(k.arrived)
	}
}

// handle delivers a message and settles it.
func (k *consumer) handle(d *driver.Delivery, ack []byte) {
	verdict := k.deliver(d)
	switch {
	case k.tx != nil:
		k.tx.add(ack)
		return
	case k.mode == ackClient:
		k.lastAck = append(k.lastAck[:0], ack...)
	case k.mode == ackIndividual:
		k.answer(verdict, ack)
	}
	if k.unacked++; k.unacked >= k.batch {
		k.settle()
		k.conn.out.Flush()
	}
}

// acknowledge acknowledges the messages that the reader has delivered. The ACK leaves with the next flush.
func (k *consumer) acknowledge() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listed = false
	if k.state == stateDirect {
		k.settle()
	}
}

// settle acknowledges the delivered messages, if there are any. The ACK leaves with the next flush.
func (k *consumer) settle() {
	if k.unacked > 0 && k.mode == ackClient && k.tx == nil {
		k.put(wire.ACK, k.lastAck)
	}
	k.unacked = 0
}

// put gathers an ACK or NACK frame. A failure is one of the connection, which Run reports.
func (k *consumer) put(command string, ack []byte) { k.putIn(command, ack, nil) }

// putIn is put with one more header line.
func (k *consumer) putIn(command string, ack, header []byte) {
	full := false
	_ = k.conn.out.Put(func(b []byte) []byte {
		b = append(b, command...)
		if k.conn.version == wire.V12 {
			b = append(append(b, "\nid:"...), ack...)
		} else {
			b = append(append(b, "\nmessage-id:"...), ack...)
			b = strconv.AppendUint(append(b, "\nsubscription:"...), k.id, 10)
		}
		b = append(append(b, header...), "\n\n\x00"...)
		full = len(b) > outMost
		return b
	})
	if full {
		k.conn.fail(errUnread())
	}
}

// Run implements [driver.Consumer].
func (k *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	k.mu.Lock()
	k.deliver, k.over = deliver, ctx.Done()
	deliverHeld, end := k.deliverHeld, func() {}
	if k.workers > 1 && k.tx == nil {
		w := newWorkers(k)
		deliverHeld, end = w.deliver, w.end
	}
	for ctx.Err() == nil && !k.conn.Dead() {
		if len(k.held) > 0 {
			deliverHeld(ctx)
			continue
		}
		k.settle()
		if k.fault != nil {
			break
		}
		if !k.holds() {
			k.state = stateDirect
		}
		k.mu.Unlock()
		k.await(ctx)
		k.mu.Lock()
	}
	k.settle()
	k.state = stateHolding
	k.mu.Unlock()
	end()
	if k.tx != nil {
		k.tx.end(ctx)
	}
	k.conn.out.Flush()
	k.mu.Lock()
	fault := k.fault
	k.deliver = nil
	k.mu.Unlock()
	switch {
	case fault != nil:
		return transport.Explain(k.op, fault)
	case ctx.Err() == nil:
		return transport.Explain(k.op, k.conn.Why())
	}
	return nil
}

// await waits until there is something to do for Run.
func (k *consumer) await(ctx context.Context) {
	k.conn.out.Flush()
	var idle <-chan time.Time
	if k.tx != nil && k.tx.n > 0 {
		k.tx.timer.Reset(idleCommit)
		defer k.tx.timer.Stop()
		idle = k.tx.timer.C
	}
	k.input.Begin()
	defer k.input.End()
	select {
	case <-k.arrived:
	case <-idle:
		k.tx.commit()
	case <-ctx.Done():
	case <-k.conn.Over():
	}
}

// deliverHeld delivers the messages held so far. The lock is held when it begins and ends, and not in between.
func (k *consumer) deliverHeld(ctx context.Context) {
	k.taken, k.held = k.held, k.taken[:0]
	k.mu.Unlock()
	ended, done := ctx.Done(), 0
	for i := range k.taken {
		select {
		case <-ended:
			k.left = k.taken[i:]
			k.mu.Lock()
			k.bytes -= done
			return
		default:
		}
		m := &k.taken[i]
		k.handle(&m.delivery, m.ack())
		if done += len(m.text) + heldSize; done >= release || cap(m.text) > keptText {
			k.mu.Lock()
			k.bytes -= done
			if cap(m.text) > keptText {
				k.large, m.text, m.delivery.Body = m.text, nil, nil
			}
			k.mu.Unlock()
			done = 0
			notify(k.unheld)
		}
	}
	k.mu.Lock()
	k.bytes -= done
	notify(k.unheld)
}

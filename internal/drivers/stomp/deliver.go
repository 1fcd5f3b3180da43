package stomp

import (
	"context"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	// holdLimit bounds the bytes of messages that are held for a consumer, or being delivered by its Run. Above it the
	// connection is not read. One more message may exceed it.
	holdLimit = 8 << 20
	// heldSize is the memory of a held message in addition to its text, in bytes.
	heldSize = 256
	// keptTexts is the largest memory for texts that is used again: that of the largest body, as append grows it.
	// Memory above usualTexts goes when that many pieces of texts after another have needed no more.
	keptTexts   = 4 * holdLimit
	usualTexts  = holdLimit + holdLimit/2
	usualPieces = 64
	// release is the number of bytes that Run delivers before it makes room for others.
	release = holdLimit / 8
)

// held are messages that wait for delivery, with their texts in one block of memory.
type held struct {
	list  []heldMessage
	text  []byte // bodies and acks, one after the other
	usual int    // how often it was emptied since it held more than usualTexts
}

type heldMessage struct {
	driver.Delivery
	ack           []byte
	at, body, end int // the text begins, the body ends, and the text ends at these offsets
	replies       int // what replies need begins at this offset
}

func (m *heldMessage) size() int { return m.end - m.at + heldSize }

func (h *held) add(m *message) int {
	at := len(h.text)
	h.text = append(append(h.text, m.Body...), m.ack...)
	replies := len(h.text)
	h.text = append(append(append(h.text, m.ReplyTo...), m.Correlation...), m.MessageID...)
	h.list = append(h.list, heldMessage{
		Delivery: m.Delivery, at: at, body: at + len(m.Body), end: len(h.text), replies: replies,
	})
	return h.list[len(h.list)-1].size()
}

// message returns the i-th message; none may be added meanwhile.
func (h *held) message(i int) *heldMessage {
	m := &h.list[i]
	m.Body, m.ack = h.text[m.at:m.body:m.body], h.text[m.body:m.replies]
	id := m.end - len(m.MessageID)
	correlation := id - len(m.Correlation)
	m.ReplyTo, m.Correlation, m.MessageID = h.text[m.replies:correlation], h.text[correlation:id], h.text[id:m.end]
	return m
}

// emptied returns h without messages; its memory is used again, unless it held large messages.
func (h held) emptied() held {
	if h.usual++; len(h.text) > usualTexts {
		h.usual = 0
	}
	if size := cap(h.text); size > keptTexts || size > usualTexts && h.usual >= usualPieces {
		h.text = nil
	}
	return held{h.list[:0], h.text[:0], h.usual}
}

// take delivers or holds a message. The reader calls it.
func (k *consumer) take(m *message) error {
	if k.correlated {
		m.correlate()
	}
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
	switch {
	case k.fault != nil:
		return nil // not acknowledged: the broker keeps it
	case k.state == stateDirect && k.holds():
		k.settle() // from now on Run delivers
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
		if k.bytes += k.held.add(m); len(k.held.list) == 1 {
			transport.Notify(k.arrived)
		}
	}
	return nil
}

// failLocked ends Run with an error, unless there already is one. It is called with the lock.
func (k *consumer) failLocked(err error) {
	if k.fault == nil {
		k.fault = err
		transport.Notify(k.arrived)
	}
}

// holds reports whether messages are held for Run. The last delivery may have ended it.
func (k *consumer) holds() bool { return k.ending() || k.runDelivers() }

func (k *consumer) ending() bool {
	select {
	case <-k.over:
		return true
	default:
		return false
	}
}

// handle delivers a message and settles it.
func (k *consumer) handle(d *driver.Delivery, ack []byte) {
	verdict := k.deliver(d)
	switch {
	case k.tx != nil:
		k.tx.add(ack)
		return
	case k.sub.ack == ackClient:
		k.lastAck = append(k.lastAck[:0], ack...)
	case verdict == driver.Accept || k.failing == driver.Accept:
		k.put(wire.ACK, ack, nil)
	default:
		k.put(wire.NACK, ack, k.nack)
	}
	if k.unacked++; k.unacked >= k.batch {
		k.settle()
		k.conn.Out.Flush()
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
	if k.unacked > 0 && k.sub.ack == ackClient {
		k.put(wire.ACK, k.lastAck, nil)
	}
	k.unacked = 0
}

// put gathers an ACK or NACK frame with one more header line, which may be empty.
func (k *consumer) put(command string, ack, header []byte) {
	_ = k.conn.Gather(func(b []byte) []byte {
		b = append(b, command...)
		b = append(append(b, "\nid:"...), ack...)
		return append(append(b, header...), "\n\n\x00"...)
	})
}

// Run implements [driver.Consumer].
func (k *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	k.mu.Lock()
	k.deliver, k.over = deliver, ctx.Done()
	for ctx.Err() == nil && !k.conn.Dead() {
		if len(k.held.list) > 0 {
			k.deliverHeld()
			continue
		}
		k.settle()
		if k.fault != nil {
			break
		}
		if !k.holds() {
			k.state = stateDirect
			k.held, k.taken = held{}, held{} // there is seldom a use for them again
		}
		k.mu.Unlock()
		k.await(ctx)
		k.mu.Lock()
	}
	k.settle()
	k.state = stateHolding
	k.mu.Unlock()
	if k.tx != nil {
		k.tx.end(ctx)
	}
	k.conn.Out.Flush()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deliver = nil
	switch {
	case k.fault != nil:
		return transport.Explain(k.op, k.fault)
	case ctx.Err() == nil:
		return transport.Explain(k.op, k.conn.Why())
	}
	return nil
}

// await waits until Run has something to do.
func (k *consumer) await(ctx context.Context) {
	k.conn.Out.Flush()
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
		k.tx.commitOpen()
	case <-ctx.Done():
	case <-k.conn.Over():
	}
}

// deliverHeld delivers the held messages. The lock is held when it begins and ends, and not in between.
func (k *consumer) deliverHeld() {
	k.taken, k.held, k.done = k.held, k.taken.emptied(), 0
	k.mu.Unlock()
	delivered := 0
	for ; k.done < len(k.taken.list) && !k.ending(); k.done++ {
		m := k.taken.message(k.done)
		k.handle(&m.Delivery, m.ack)
		if delivered += m.size(); delivered >= release {
			k.room(delivered)
			delivered = 0
		}
	}
	k.room(delivered)
	k.mu.Lock()
}

// room records that so many bytes of messages have been delivered.
func (k *consumer) room(bytes int) {
	k.mu.Lock()
	k.bytes -= bytes
	k.mu.Unlock()
	transport.Notify(k.unheld)
}

package stomp

import (
	"errors"
	"fmt"
	"strings"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// read handles frames from the broker until the connection ends, and then reports the messages in flight. It
// runs in one goroutine, the reader.
func (c *connection) read() {
	err := c.readFrames()
	c.confirmed.report()
	c.fail(err)
	c.in.in.Release()
	cause := c.Why()
	for _, p := range *c.producers.Load() {
		if p != nil {
			err := c.explain(p.op, cause)
			p.abandon(driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(err), Err: err}, true)
		}
	}
}

// readFrames handles frames until the connection ends, and returns why it ended.
func (c *connection) readFrames() error {
	var f inbound
	var said error // by an ERROR frame, with nothing after it
	for {
		if err := c.in.next(&f); err != nil {
			if said != nil {
				return said // the broker said why before it closed
			}
			return err
		}
		switch {
		case f.kind == kindMessage:
			said = nil
			c.confirmed.report() // a delivery may take long
			if err := c.message(&f); err != nil {
				return err
			}
		case f.kind == kindReceipt:
			said = nil
			if f.receipt.kind != 0 {
				c.answer(f.receipt, nil)
			}
		case f.other.Command == wire.ERROR:
			if c.late(f.other) {
				continue
			}
			e := errorFrame(c.dialect, f.other)
			if said == nil {
				said = e // later errors only say that the connection is not valid any more
			}
			r, ok := parseReceipt([]byte(f.other.Get("receipt-id")))
			if !ok || !c.answer(r, e) {
				return said
			}
			// The broker has to close now (STOMP 1.2, "ERROR"). Some do not: then the error is that frame's alone.
		default:
			return fmt.Errorf("%w: the broker sent another %s", errNotSTOMP, f.other.Command)
		}
	}
}

// late reports whether an ERROR frame is RabbitMQ's way to say that a message was under way to a subscription that we
// had ended. It keeps the connection open, and the message goes back to its queue when that closes.
func (c *connection) late(f *wire.Frame) bool {
	if c.dialect != rabbitmq {
		return false
	}
	_, tag, ok := strings.Cut(string(f.Body), "There is no current subscription with tag 'T_")
	if !ok {
		return false
	}
	tag, _, _ = strings.Cut(tag, "'")
	id, _, ok := cutNumber([]byte(tag), 0)
	if !ok || id >= uint64(len(*c.consumers.Load())) {
		return false
	}
	k := find(&c.consumers, id)
	return k == nil || k.ended()
}

// answer hands an answer to its waiter; it returns false if there is none.
func (c *connection) answer(r receipt, err error) bool {
	switch r.kind {
	case receiptOfRequest:
		return c.answerRequest(r.number, err)
	case receiptOfReceive:
		k := find(&c.consumers, r.owner)
		return k != nil && k.committed(r.number, err)
	}
	p := find(&c.producers, r.owner)
	switch {
	case p == nil:
		return false
	case err == nil:
		p.taken = true
		if r.kind == receiptOfSend {
			return c.confirmed.add(p, r.slot)
		}
		return p.tx != nil && p.tx.ended(r.number, driver.Outcome{})
	}
	c.confirmed.report()
	o := p.refusal(err)
	if r.kind == receiptOfSend {
		return p.refused(r.slot, o)
	}
	return p.tx != nil && p.tx.ended(r.number, o)
}

// refusal is the outcome of a send, or of the sends of a transaction, that the broker has answered with an error.
func (p *producer) refusal(err error) driver.Outcome {
	var known *driver.Error
	if errors.Is(err, errUnsaid) && errors.As(err, &known) && p.taken {
		err = full(known)
	}
	e := p.conn.explain(p.op, err)
	o := driver.Outcome{State: driver.Failed, Class: driver.ClassOf(e), Err: e}
	switch o.Class {
	case driver.ClassAuth, driver.ClassFull, driver.ClassTooLarge, driver.ClassNotFound:
		o.State = driver.Rejected
	}
	return o
}

// message hands a message to its consumer.
func (c *connection) message(f *inbound) error {
	if f.sub < 0 {
		return nil
	}
	k := find(&c.consumers, uint64(f.sub))
	if k == nil {
		return nil // of a subscription that has ended
	}
	return k.take(f)
}

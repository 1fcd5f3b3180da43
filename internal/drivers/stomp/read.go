package stomp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/pkg/driver"
)

// read handles what the broker sends until the connection ends, and then reports what was in flight. It runs in one
// goroutine, the reader.
func (c *connection) read() {
	c.fail(c.readFrames())
	cause := c.whyEnded()
	for _, p := range *c.producers.Load() {
		if p != nil {
			err := c.explain(p.op, cause)
			p.abandon(driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(err), Err: err})
		}
	}
}

// readFrames returns why it ended.
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
			if err := c.message(&f); err != nil {
				return err
			}
		case f.kind == kindReceipt:
			said = nil
			if r, ok := parseReceipt(f.receipt); ok {
				c.answer(r, nil)
			}
		case f.other.Command == frame.ERROR:
			if c.late(f.other) {
				continue
			}
			e := errorFrame(c.dialect, f.other)
			if said == nil {
				said = e // what comes after it is only that the connection is not valid any more
			}
			r, ok := parseReceipt([]byte(f.other.Header.Get(frame.ReceiptId)))
			if !ok || !c.answer(r, e) {
				return said
			}
			// The broker has to close now (STOMP 1.2, "ERROR"). Some do not: then the error is that frame's alone.
		default:
			return fmt.Errorf("%w: the broker sent another %s", errNotSTOMP, f.other.Command)
		}
	}
}

// late reports whether an ERROR frame is RabbitMQ's way to say that a message was under way to a subscription that we had
// ended. It keeps the connection open, and the message goes back to its queue when that closes.
func (c *connection) late(f *frame.Frame) bool {
	if c.dialect != rabbitmq {
		return false
	}
	_, tag, ok := strings.Cut(string(f.Body), "There is no current subscription with tag 'T_")
	if !ok {
		return false
	}
	tag, _, _ = strings.Cut(tag, "'")
	id, _, ok := cutNumber([]byte(tag), 0)
	consumers := *c.consumers.Load()
	return ok && id < uint64(len(consumers)) && (consumers[id] == nil || consumers[id].ended())
}

// answer hands an answer to whom it belongs; it returns false when nobody waits for it.
func (c *connection) answer(r receipt, err error) bool {
	if r.kind == receiptOfRequest {
		c.mu.Lock()
		defer c.mu.Unlock()
		answer, ok := c.waiting[r.seq]
		if ok {
			delete(c.waiting, r.seq)
			answer <- err
		}
		return ok
	}
	producers := *c.producers.Load()
	if r.owner >= uint64(len(producers)) || producers[r.owner] == nil {
		return false
	}
	p := producers[r.owner]
	o := driver.Outcome{}
	if err != nil {
		var known *driver.Error
		if errors.Is(err, errUnsaid) && errors.As(err, &known) && p.taken {
			err = full(known)
		}
		e := c.explain(p.op, err)
		o = driver.Outcome{State: driver.Failed, Class: driver.ClassOf(e), Err: e}
		switch o.Class {
		case driver.ClassAuth, driver.ClassFull, driver.ClassTooLarge, driver.ClassNotFound:
			o.State = driver.Rejected
		}
	}
	p.taken = p.taken || err == nil
	return p.answered(r, o)
}

// message hands a message to its consumer.
func (c *connection) message(f *inbound) error {
	consumers := *c.consumers.Load()
	if f.sub < 0 || f.sub >= int64(len(consumers)) || consumers[f.sub] == nil {
		return nil // of a subscription that has ended
	}
	return consumers[f.sub].take(f)
}

// acknowledge has the reader's consumers acknowledge what they have delivered. The reader calls it when nothing more
// has arrived.
func (c *connection) acknowledge() {
	for i, k := range c.acking {
		k.acknowledge()
		c.acking[i] = nil
	}
	c.acking = c.acking[:0]
}

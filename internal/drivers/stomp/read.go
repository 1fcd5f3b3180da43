package stomp

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// read processes frames from the broker until the connection ends, and then reports the messages in flight. It runs in
// one goroutine, the reader.
func (c *connection) read() {
	err := c.readFrames()
	c.confirmed.report()
	c.Fail(err)
	cause := c.Why()
	for _, p := range *c.producers.Load() {
		if p != nil {
			err := transport.Explain(p.op, cause)
			p.abandon(driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(err), Err: err}, true)
			p.End(err)
		}
	}
}

// readFrames processes frames until the connection ends, and returns why it ended.
func (c *connection) readFrames() error {
	var m message
	var said error // the first ERROR frame since the last frame of another kind
	for {
		f, err := c.next(lookAtBroker)
		if err != nil {
			return cmp.Or(said, err) // the broker may have given the reason before it closed
		}
		switch f.Command {
		case wire.MESSAGE:
			said = nil
			c.confirmed.report() // a delivery may take long
			m.read(f)
			if k := find(&c.consumers, uint64(m.sub)); k != nil { //nolint:gosec // there is none of -1
				if err := k.take(&m); err != nil {
					return err
				}
			}
		case wire.RECEIPT:
			said = nil
			if r, ok := parseReceipt(f.Get("receipt-id")); ok {
				c.answer(r, nil)
			}
		case wire.ERROR:
			if c.late(f) {
				continue
			}
			e := errorFrame(c.dialect, f)
			if said == nil {
				said = c.lost(e) // later errors only report that the connection is no longer valid
			}
			r, ok := parseReceipt(f.Get("receipt-id"))
			if !ok || !c.answer(r, e) {
				return said
			}
			// The broker has to close now (STOMP 1.2, "ERROR"). Some do not: then the error is only about that frame.
		default:
			return broken(lookAtBroker, fmt.Errorf("%w: another %s", wire.ErrSyntax, f.Command))
		}
	}
}

// lost returns e as the reason of the connection's end: a loss, unless e may be about the first message to a
// destination, which stands for the opening of a producer.
func (c *connection) lost(e *driver.Error) error {
	for _, p := range *c.producers.Load() {
		if p != nil && !p.taken && !p.sends.None() {
			return e
		}
	}
	return &driver.Error{Class: driver.ClassClosedByBroker.LossBy(e.Class), Hint: e.Hint, Err: e.Err}
}

// next reads a frame; hint is for input that is not a frame.
func (c *connection) next(hint string) (*wire.Received, error) {
	f, err := c.in.Next()
	if err != nil {
		return nil, readError(hint, err)
	}
	return f, nil
}

// readError explains an error of the frames' reader. (It is a separate function because errors.As allocates.)
func readError(hint string, err error) error {
	var large *wire.TooLargeError
	switch {
	case errors.As(err, &large) && large.Command == wire.MESSAGE:
		return transport.TooLarge("", "a message with a body of", large.Size, large.Limit)
	case large != nil, errors.Is(err, wire.ErrSyntax):
		return broken(hint, err)
	}
	return err
}

func broken(hint string, err error) error {
	return driver.Errorf(driver.ClassProtocol, "", hint, "the broker broke the protocol: %w", err)
}

// late reports whether an ERROR frame is RabbitMQ's report that a message was in flight to a subscription that we had
// ended. RabbitMQ keeps the connection open, and the message goes back to its queue when the connection closes.
func (c *connection) late(f *wire.Received) bool {
	if c.dialect != rabbitmq {
		return false
	}
	_, tag, ok := strings.Cut(string(f.Body), "There is no current subscription with tag 'T_")
	if !ok {
		return false
	}
	tag, _, _ = strings.Cut(tag, "'")
	id, ok := wire.ParseNumber(tag)
	if !ok || id >= uint64(len(*c.consumers.Load())) {
		return false
	}
	k := find(&c.consumers, id)
	return k == nil || k.ended()
}

// answer passes an answer to its waiter; it returns false without one.
func (c *connection) answer(r receipt, err error) bool {
	switch r.kind {
	case receiptOfRequest:
		return c.answerRequest(r.number, err)
	case receiptOfReceive:
		k := find(&c.consumers, r.owner)
		return k != nil && k.committed(r.number, err)
	}
	p := find(&c.producers, r.owner)
	if p == nil {
		return false
	}
	var o driver.Outcome
	if err == nil {
		p.took()
	} else {
		c.confirmed.report()
		o = protocol.STOMPRefused(p.op, err, p.taken)
	}
	switch {
	case r.kind == receiptOfCommit:
		return p.tx != nil && p.tx.ended(r.number, o)
	case !p.sends.Claim(r.slot):
		return p.sends.Late(r.slot, o)
	case err == nil:
		c.confirmed.add(p, r.slot)
	default:
		p.sends.Report([]driver.Slot{r.slot}, o)
	}
	return true
}

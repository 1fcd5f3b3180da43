package stomp

import (
	"bytes"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// settle handles ACK and NACK.
func (c *conn) settle(f *wire.Received, nack bool) error {
	name := f.Get("id")
	if name == nil {
		return missing("id")
	}
	source, serial, id, ok := parseID(name)
	s := c.subs[serial]
	if !ok || source != c.source || serial >= c.serial || s != nil && id >= s.sent.Load() {
		return refuse("invalid acknowledgement: %.80q was not delivered", name)
	}
	if s == nil {
		if f.Get("receipt") != nil || f.Get("transaction") != nil {
			return refuse("invalid acknowledgement: the subscription of %.80q has ended", name)
		}
		return nil // crossed with the end: the message was returned
	}
	step := step{sub: s, id: id}
	switch {
	case nack && string(f.Get("requeue")) == "false":
		step.outcome = store.Rejected
	case nack:
		step.outcome = store.Failed
	}
	switch tx := f.Get("transaction"); {
	case s.mode == modeAuto && nack:
		return refuse("invalid frame: NACK of a message delivered with ack:auto")
	case s.mode == modeAuto:
		return nil // settled at its delivery
	case tx != nil:
		return c.settleIn(tx, step)
	}
	if err := c.server.Store.AwaitStall(c.done, c.flush); err != nil {
		return err
	}
	if !step.settle() && s.mode == modeIndividual {
		return refuse("invalid acknowledgement: %.80q was settled before", name)
	}
	return nil
}

// parseID parses the message-id of a delivery: CONNECTION-SUBSCRIPTION-NUMBER.
func parseID(b []byte) (source, serial, id uint64, ok bool) {
	first, rest, _ := bytes.Cut(b, []byte{'-'})
	second, third, _ := bytes.Cut(rest, []byte{'-'})
	source, ok1 := wire.ParseNumber(first)
	serial, ok2 := wire.ParseNumber(second)
	id, ok3 := wire.ParseNumber(third)
	return source, serial, id, ok1 && ok2 && ok3
}

// settle settles the deliveries of an ACK or NACK; it returns false if they were settled before.
func (x *step) settle() bool {
	s := x.sub
	from := x.id
	if s.mode == modeClient {
		from = min(s.low, x.id)
		s.low = max(s.low, x.id+1)
	}
	n := 0
	if x.outcome == store.Accepted && s.mode == modeClient {
		n = s.consumer.AcceptThrough(x.id)
		from = x.id + 1
	}
	for id := from; id <= x.id; id++ {
		if s.consumer.Settle(id, x.outcome) {
			n++
		}
	}
	if s.outstanding.Add(-int64(n)) <= s.limit*3/4 && s.starved.CompareAndSwap(true, false) {
		s.notify()
	}
	return n > 0
}

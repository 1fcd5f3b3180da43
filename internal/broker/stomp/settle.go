package stomp

import wire "github.com/perfmq/perfmq/internal/wire/stomp"

import "bytes"

// settlement is an ACK or NACK.
type settlement struct {
	sub  *subscription
	id   uint64 // of the delivery
	nack bool
	drop bool // with nack: it is not to come again
}

// settle handles ACK and NACK.
func (c *conn) settle(f *frame, nack bool) error {
	if nack && c.version == wire.V10 {
		return refuse("invalid frame: STOMP 1.0 has no NACK")
	}
	name := f.get("id")
	if name == nil || c.version != wire.V12 {
		name = f.get("message-id")
	}
	if name == nil {
		return refuse("invalid frame: an acknowledgement without id")
	}
	source, serial, id, ok := parseID(name)
	if !ok || source != c.source || serial >= c.serial {
		return refuse("invalid acknowledgement: %.80q was not delivered on this connection", name)
	}
	s := c.subs[serial]
	if s == nil {
		if f.get("receipt") != nil || f.get("transaction") != nil {
			return refuse("invalid acknowledgement: the subscription of %.80q has ended", name)
		}
		return nil // the two have crossed: the message has gone back
	}
	if id >= s.sent.Load() {
		return refuse("invalid acknowledgement: %.80q was not delivered", name)
	}
	step := step{settlement: settlement{sub: s, id: id, nack: nack, drop: nack && string(f.get("requeue")) == "false"}}
	switch tx := f.get("transaction"); {
	case s.mode == modeAuto && nack:
		return refuse("invalid frame: NACK of a message delivered with ack:auto")
	case s.mode == modeAuto:
		return nil // done already
	case tx != nil:
		return c.add(tx, step, 1)
	}
	if err := c.awaitStall(); err != nil {
		return err
	}
	if !step.apply() && s.mode == modeIndividual {
		return refuse("invalid acknowledgement: %.80q was settled before", name)
	}
	return nil
}

// parseID reads the name of a delivery: CONNECTION-SUBSCRIPTION-NUMBER.
func parseID(b []byte) (source, serial, id uint64, ok bool) {
	first, rest, _ := bytes.Cut(b, []byte{'-'})
	second, third, _ := bytes.Cut(rest, []byte{'-'})
	source, ok1 := wire.ParseNumber(first)
	serial, ok2 := wire.ParseNumber(second)
	id, ok3 := wire.ParseNumber(third)
	return source, serial, id, ok1 && ok2 && ok3
}

// apply settles; it returns false if there was nothing to settle any more.
func (x *settlement) apply() bool {
	s := x.sub
	n := 0
	switch {
	case !x.nack && s.mode == modeClient:
		n = s.consumer.AcceptThrough(x.id)
	case !x.nack:
		if s.consumer.Accept(x.id) {
			n = 1
		}
	case s.mode == modeClient:
		for id := s.low.Load(); id <= x.id; id++ {
			n += s.giveBack(id, x.drop)
		}
	default:
		n = s.giveBack(x.id, x.drop)
	}
	for low := s.low.Load(); s.mode == modeClient && low <= x.id && !s.low.CompareAndSwap(low, x.id+1); {
		low = s.low.Load()
	}
	s.settled(x.id, int64(n))
	return n > 0
}

// giveBack returns a message to its queue as one that this consumer could not deal with. One that has been delivered
// maxAttempts times, or is to be dropped, is dropped, and counted as rejected.
func (s *subscription) giveBack(id uint64, drop bool) int {
	s.mu.Lock()
	_, last := s.last[id]
	s.mu.Unlock()
	last = last || drop
	if last && s.consumer.Reject(id) || !last && s.consumer.Release(id, true) {
		return 1
	}
	return 0
}

// settled notes that n deliveries were settled: id, and in mode client those before it.
func (s *subscription) settled(id uint64, n int64) {
	if s.tracked.Load() {
		s.mu.Lock()
		s.forget(id)
		s.mu.Unlock()
	}
	if s.outstanding.Add(-n) <= s.limit*3/4 && s.starved.CompareAndSwap(true, false) {
		s.notify()
	}
}

// forget drops the notes about deliveries; s.mu is held.
func (s *subscription) forget(id uint64) {
	drop := func(id uint64) {
		s.unacked -= s.sizes[id]
		delete(s.sizes, id)
		delete(s.last, id)
	}
	if drop(id); s.mode != modeClient {
		return
	}
	for i := range s.sizes {
		if i < id {
			drop(i)
		}
	}
	for i := range s.last {
		if i < id {
			drop(i)
		}
	}
}

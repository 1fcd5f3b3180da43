package amqp

import (
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// flow handles the peer's flow state: the session's window, and the credit of a link.
func (s *session) flow(p *wire.Body) error {
	var f wire.Flow
	if err := f.Decode(&p.Fields); err != nil {
		return err
	}
	s.mu.Lock()
	// Without a next incoming ID the peer has not seen our begin: our first transfer is 0.
	s.room = left(f.IncomingWindow, s.nextOut, f.NextIncomingID.Or(0))
	var l *link
	if f.Handle.OK {
		if l = s.byRemote(f.Handle.V); l == nil {
			s.mu.Unlock()
			if s.gone() {
				return nil // it crossed our detach
			}
			return protocolError("a flow for handle %d, which is not attached", f.Handle.V)
		}
	}
	drained := false
	if l != nil && l.role == wire.RoleSender {
		// The peer that has not seen our attach yet counts from our first delivery (Transport, section 2.6.7).
		l.credit = left(f.LinkCredit.Or(0), l.deliveryCount, f.DeliveryCount.Or(0))
		if drained = f.Drain; drained { // there is nothing that waits to be sent: the credit is used up
			l.deliveryCount += l.credit
			l.credit = 0
		}
	}
	s.mu.Unlock()
	if l != nil && (drained || f.Echo) || l == nil && f.Echo {
		_ = s.c.put(func(b []byte) []byte { return s.appendFlow(b, l, drained) })
	}
	s.wake()
	return nil
}

// gone reports whether a link of the session is being detached.
func (s *session) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		if l != nil && l.detaching {
			return true
		}
	}
	return s.ends
}

// wake lets producers look at credit and window again.
func (s *session) wake() {
	s.mu.Lock()
	links := s.links
	s.mu.Unlock()
	for _, l := range links {
		switch {
		case l == nil:
		case l.producer != nil:
			l.producer.wake()
		case l.control != nil:
			l.control.wake()
		}
	}
}

// left returns the rest of the peer's grant, which the peer made when it had seen the count at seen. A peer that claims
// to have seen more than the count grants no more than it says.
func left(granted, count, seen uint32) uint32 {
	used := count - seen
	switch {
	case int32(used) < 0: //nolint:gosec // serial numbers
		return granted
	case used > granted:
		return 0
	default:
		return granted - used
	}
}

// appendFlow appends our flow state, with that of a link if it is not nil.
func (s *session) appendFlow(b []byte, l *link, drained bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := wire.Flow{
		NextIncomingID: wire.Some(s.nextIn.Load()), IncomingWindow: incomingWindow,
		NextOutgoingID: s.nextOut, OutgoingWindow: outgoingWindow,
	}
	if l != nil {
		f.Handle = wire.Some(l.handle)
		switch {
		case l.role == wire.RoleSender:
			f.DeliveryCount, f.LinkCredit, f.Drain = wire.Some(l.deliveryCount), wire.Some(l.credit), drained
		case l.consumer != nil:
			f.DeliveryCount, f.LinkCredit = l.consumer.flowState()
		}
	}
	return f.AppendFrame(b, s.channel)
}

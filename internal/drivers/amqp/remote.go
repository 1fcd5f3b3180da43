package amqp

import (
	"errors"
	"slices"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// begun handles the answer to our begin.
func (s *session) begun(f *wire.Begin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begins = true
	s.nextIn.Store(f.NextOutgoingID)
	s.room = f.IncomingWindow // our first transfer is 0
	transport.Notify(s.changed)
}

// attached handles an attach: the answer to ours.
func (s *session) attached(p *wire.Body) error {
	var f wire.Attach
	if err := f.Decode(&p.Fields); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		if l == nil || l.attached || l.name != f.Name || l.role == f.Role {
			continue
		}
		f.Properties = nil // they lie in the read buffer, which would stay in memory for as long as the link
		l.attached, l.remoteHandle, l.peer = true, f.Handle, f
		l.refused = l.role == wire.RoleSender && f.Target.Kind == 0 || l.role == wire.RoleReceiver && f.Source.Kind == 0
		if l.role == wire.RoleReceiver {
			s.receiver = l
		}
		if l.consumer != nil {
			l.consumer.begin(f.InitialDeliveryCount.Or(0))
		}
		transport.Notify(s.changed)
		return nil
	}
	return unexpected("attach", f.Name)
}

// byRemote returns the link that the peer names so, or nil. The lock is held.
func (s *session) byRemote(handle uint32) *link {
	for _, l := range s.links {
		if l != nil && l.attached && l.remoteHandle == handle {
			return l
		}
	}
	return nil
}

// detached handles the end of a link.
func (s *session) detached(p *wire.Body) error {
	var f wire.Detach
	if err := f.Decode(&p.Fields); err != nil {
		return err
	}
	s.mu.Lock()
	l := s.byRemote(f.Handle)
	if l == nil {
		s.mu.Unlock()
		return unexpected("detach of handle", f.Handle)
	}
	answer := !l.detaching
	l.detaching = true
	s.mu.Unlock()
	if answer { // before a new attach of the handle, which would be detached by it
		_ = s.put(&wire.Detach{Handle: l.handle, Closed: f.Closed})
	}
	s.mu.Lock()
	opening := l.opening
	l.gone, l.attached = true, false
	switch {
	case f.Error != nil && l.refused:
		err := s.c.remote("", driver.ClassOther, "", f.Error)
		if s.c.dialect == artemis && f.Error.Condition == wire.CondIllegalState {
			err.Hint = hintKind // a consumer of a queue where it has a topic
		}
		l.err = err
	case !l.refused && (f.Error != nil || answer):
		l.err = s.c.endOf("the broker closed the link", opening, driver.ClassClosedByBroker, f.Error)
	}
	err := l.err
	transport.Notify(s.changed)
	s.mu.Unlock()
	if answer && !opening {
		l.end(err)
	}
	return nil
}

// ended handles the end of the session.
func (s *session) ended(p *wire.Body) error {
	var f wire.End
	if err := f.Decode(&p.Fields); err != nil {
		return err
	}
	s.mu.Lock()
	answer, opening := !s.ends, s.links[0] == nil || s.links[0].opening
	s.ends = true
	s.mu.Unlock()
	why := transport.ErrClosed
	if f.Error != nil || answer {
		why = s.c.endOf("the broker ended the session", opening, driver.ClassClosedByBroker, f.Error)
	}
	if answer {
		_ = s.put(new(wire.End))
	}
	s.end(why)
	return nil
}

// end ends the session locally: the peer has ended it, or the connection is lost.
func (s *session) end(why error) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over = true
	if !errors.Is(why, transport.ErrClosed) {
		s.err = why
	}
	links := s.links
	transport.Notify(s.changed)
	s.mu.Unlock()
	for _, l := range links {
		if l != nil {
			l.end(why)
		}
	}
}

// end tells the owner of a link that nothing more will come.
func (l *link) end(why error) {
	if why == nil {
		why = transport.ErrClosed
	}
	switch {
	case l.owner != nil:
		l.owner.abandon(why)
	case l.consumer != nil:
		l.consumer.stop(why)
	}
}

// transfer processes a frame of a delivery.
func (s *session) transfer(p *wire.Body) error {
	var t wire.Transfer
	if err := t.Decode(&p.Fields); err != nil {
		return err
	}
	s.nextIn.Add(1)
	l := s.receiver
	if l == nil || l.remoteHandle != t.Handle {
		return unexpected("transfer for handle", t.Handle)
	}
	if l.consumer != nil {
		return l.consumer.transfer(&t, p.Payload)
	}
	return l.readReply(&t, p.Payload)
}

// maxReply bounds an answer of the broker itself, in bytes.
const maxReply = 1 << 20

// readReply processes a frame of a reply to a request.
func (l *link) readReply(t *wire.Transfer, payload []byte) error {
	if len(l.pieces)+len(payload) > maxReply {
		return driver.Errorf(driver.ClassTooLarge, "", "", "the broker sent an answer of more than %d bytes", maxReply)
	}
	l.pieces = append(l.pieces, payload...)
	if t.More && !t.Aborted {
		return nil
	}
	whole := l.pieces
	l.pieces = nil
	if t.Aborted {
		return nil
	}
	return l.reply(whole)
}

// disposition processes the outcomes of our deliveries.
func (s *session) disposition(p *wire.Body) error {
	var f wire.Disposition
	if err := f.Decode(&p.Fields); err != nil {
		return err
	}
	if f.Role == wire.RoleSender {
		return nil // about deliveries that we have received: we settle first
	}
	state, err := wire.ParseState(f.State)
	if err != nil {
		return err
	}
	if !f.Settled && !state.Terminal() && state.Kind != wire.DescDeclared {
		return nil // not final
	}
	s.mu.Lock()
	links := s.links
	s.mu.Unlock()
	for _, l := range links {
		if l != nil && l.owner != nil {
			l.owner.settle(f.First, f.Last, state)
		}
	}
	if !f.Settled { // the peer waits for us to settle them
		return s.put(&wire.Disposition{Role: wire.RoleSender, First: f.First, Last: f.Last, Settled: true})
	}
	return nil
}

// outcome translates the broker's answer (Messaging, section 3.4).
func (d dialect) outcome(op string, state *wire.State) driver.Outcome {
	switch state.Kind {
	case wire.DescAccepted:
		return driver.Outcome{}
	case wire.DescReleased:
		return driver.Outcome{State: driver.Released, Class: driver.ClassOther}
	case wire.DescModified:
		return driver.Outcome{State: driver.Modified, Class: driver.ClassOther}
	case wire.DescRejected:
		e := driver.Errorf(driver.ClassOther, op, lookAtBroker, "the broker rejected the message without saying why")
		if state.Error != nil {
			e = d.remote("", driver.ClassOther, op, state.Error)
		}
		if e.Class == driver.ClassTimeout { // Azure: it may be stored all the same
			return unknown(e)
		}
		return driver.Outcome{State: driver.Rejected, Class: e.Class, Err: e}
	default:
		return unknown(driver.Errorf(driver.ClassProtocol, op, lookAtBroker,
			"the broker settled the message without an outcome"))
	}
}

// unknown is the outcome of messages with nothing known but err.
func unknown(err error) driver.Outcome {
	return driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(err), Err: err}
}

// flow processes the peer's flow state: the session's window, and the credit of a link.
func (s *session) flow(p *wire.Body) error {
	var f wire.Flow
	if err := f.Decode(&p.Fields); err != nil {
		return err
	}
	s.mu.Lock()
	// Without a next-incoming-id the peer has not seen our begin: our first transfer is 0.
	s.room = grantLeft(f.IncomingWindow, s.nextOut, f.NextIncomingID.Or(0))
	var l *link
	if f.Handle.OK {
		if l = s.byRemote(f.Handle.V); l == nil {
			defer s.mu.Unlock()
			if s.ends || slices.ContainsFunc(s.links[:], func(l *link) bool { return l != nil && l.detaching }) {
				return nil // it crossed our detach
			}
			return unexpected("flow for handle", f.Handle.V)
		}
	}
	drained := false
	if l != nil && l.role == wire.RoleSender {
		// A peer that has not yet seen our attach counts from our first delivery (Transport, section 2.6.7).
		l.credit = grantLeft(f.LinkCredit.Or(0), l.deliveryCount, f.DeliveryCount.Or(0))
		if drained = f.Drain; drained { // nothing waits to be sent: the credit is used up
			l.deliveryCount += l.credit
			l.credit = 0
		}
	}
	links := s.links
	if l == nil || l.role == wire.RoleReceiver {
		s.flows++
		transport.Notify(s.changed)
	}
	s.mu.Unlock()
	if drained || f.Echo {
		_ = s.c.Put(func(b []byte) []byte { return s.appendFlow(b, l, drained) })
	}
	for _, l := range links {
		if l != nil && l.owner != nil {
			l.owner.wake()
		}
	}
	return nil
}

// grantLeft returns the rest of the peer's grant, which the peer made when it had seen the count at seen. A peer that
// claims to have seen more than the count grants no more than it says.
func grantLeft(granted, count, seen uint32) uint32 {
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

// appendFlow appends our flow state, with the state of a link if it is not nil.
func (s *session) appendFlow(b []byte, l *link, drained bool) []byte {
	f := s.flowState()
	if l != nil {
		f.Handle = wire.Some(l.handle)
		switch {
		case l.role == wire.RoleSender:
			s.mu.Lock()
			f.DeliveryCount, f.LinkCredit, f.Drain = wire.Some(l.deliveryCount), wire.Some(l.credit), drained
			s.mu.Unlock()
		case l.consumer != nil:
			f.DeliveryCount, f.LinkCredit = l.consumer.flowState()
		}
	}
	return f.AppendFrame(b, s.channel)
}

// flowState returns our flow state, without a link.
func (s *session) flowState() wire.Flow {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.Flow{
		NextIncomingID: wire.Some(s.nextIn.Load()), IncomingWindow: window, NextOutgoingID: s.nextOut,
		OutgoingWindow: window,
	}
}

package amqp

import (
	"errors"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// begun handles the answer to our begin.
func (s *session) begun(f *wire.Begin) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begins = true
	s.nextIn.Store(f.NextOutgoingID)
	s.room = f.IncomingWindow // our first transfer is 0
	s.notify()
	return nil
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
		l.attached, l.remoteHandle = true, f.Handle
		l.refused = l.role == wire.RoleSender && f.Target.Kind == 0 || l.role == wire.RoleReceiver && f.Source.Kind == 0
		l.peer = peerLink{
			maxMessage: f.MaxMessageSize, sendSettle: f.SenderSettleMode, recvSettle: f.ReceiverSettleMode,
			offered: f.OfferedCapabilities, address: f.Source.Address.V,
		}
		if f.Target.Kind == wire.DescCoordinator {
			l.peer.coordinator = f.Target.Capabilities
		}
		for _, filter := range f.Source.Filters {
			l.peer.filters = append(l.peer.filters, filter.Name)
		}
		if l.role == wire.RoleReceiver {
			s.receiver = l
		}
		if l.consumer != nil {
			l.consumer.begin(f.InitialDeliveryCount.Or(0))
		}
		s.notify()
		return nil
	}
	return protocolError("an attach of %.100q, which we did not ask for", f.Name)
}

// byRemote returns the link that the peer names so; nil if there is none. The lock is held.
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
		return protocolError("a detach of handle %d, which is not attached", f.Handle)
	}
	answer := !l.detaching
	l.detaching, l.gone, l.attached = true, true, false
	switch {
	case f.Error != nil && l.refused:
		l.err = s.c.remote("", driver.ClassOther, "", f.Error)
	case f.Error != nil:
		l.err = s.c.remote("the broker closed the link", driver.ClassClosedByBroker, "", f.Error)
	case answer && !l.refused:
		l.err = driver.Errorf(driver.ClassClosedByBroker, "", lookAtBroker, "the broker closed the link without saying why")
	}
	err := l.err
	s.notify()
	s.mu.Unlock()
	if answer {
		detach := wire.Detach{Handle: l.handle, Closed: f.Closed}
		_ = s.c.put(func(b []byte) []byte { return detach.AppendFrame(b, s.channel) })
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
	answer := !s.ends
	s.ends = true
	s.mu.Unlock()
	var why error
	switch {
	case f.Error != nil:
		why = s.c.remote("the broker ended the session", driver.ClassClosedByBroker, "", f.Error)
	case answer:
		why = driver.Errorf(driver.ClassClosedByBroker, "", lookAtBroker, "the broker ended the session without saying why")
	default:
		why = transport.ErrClosed
	}
	if answer {
		_ = s.c.put(func(b []byte) []byte { return new(wire.End).AppendFrame(b, s.channel) })
	}
	s.end(why)
	return nil
}

// end ends the session on our side: because the peer has, or the connection is lost.
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
	s.notify()
	s.mu.Unlock()
	for _, l := range links {
		if l != nil {
			l.end(why)
		}
	}
}

// end tells the owner of a link that nothing more comes.
func (l *link) end(why error) {
	switch {
	case l.producer != nil:
		l.producer.abandon(why)
	case l.consumer != nil:
		l.consumer.stop(why)
	case l.control != nil:
		l.control.abandon(why)
	}
}

// transfer handles a frame of a delivery.
func (s *session) transfer(p *wire.Body) error {
	var t wire.Transfer
	if err := t.Decode(&p.Fields); err != nil {
		return err
	}
	s.nextIn.Add(1)
	l := s.receiver
	if l == nil || l.remoteHandle != t.Handle {
		return protocolError("a transfer for handle %d, over which we receive nothing", t.Handle)
	}
	if l.consumer != nil {
		return l.consumer.transfer(&t, p.Payload)
	}
	return l.answer(&t, p.Payload)
}

// maxReply is the largest answer of the broker itself that is taken.
const maxReply = 1 << 20

// answer takes a frame of a reply to a request.
func (l *link) answer(t *wire.Transfer, payload []byte) error {
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

// disposition handles the outcomes of deliveries of ours.
func (s *session) disposition(p *wire.Body) error {
	var f wire.Disposition
	if err := f.Decode(&p.Fields); err != nil {
		return err
	}
	if f.Role == wire.RoleSender {
		return nil // of deliveries that we have received: we settle first
	}
	state, err := wire.ParseState(f.State)
	if err != nil {
		return err
	}
	if !f.Settled && !state.Terminal() && state.Kind != wire.DescDeclared {
		return nil // it goes on
	}
	s.mu.Lock()
	links := s.links
	s.mu.Unlock()
	for _, l := range links {
		switch {
		case l == nil:
		case l.producer != nil:
			l.producer.settle(f.First, f.Last, s.c.outcome(l.producer.op, &state))
		case l.control != nil:
			l.control.settle(f.First, f.Last, state)
		}
	}
	if !f.Settled { // it waits for us to forget them
		settled := wire.Disposition{Role: wire.RoleSender, First: f.First, Last: f.Last, Settled: true}
		return s.c.put(func(b []byte) []byte { return settled.AppendFrame(b, s.channel) })
	}
	return nil
}

// outcome translates the broker's answer (Messaging, section 3.4).
func (d dialect) outcome(op string, state *wire.State) driver.Outcome {
	switch state.Kind {
	case wire.DescAccepted:
		return driver.Outcome{}
	case wire.DescRejected:
		if state.Error == nil {
			return driver.Outcome{
				State: driver.Rejected, Class: driver.ClassOther,
				Err: driver.Errorf(driver.ClassOther, op, lookAtBroker, "the broker rejected the message without saying why"),
			}
		}
		e := d.remote("", driver.ClassOther, op, state.Error)
		return driver.Outcome{State: driver.Rejected, Class: e.Class, Err: e}
	case wire.DescReleased:
		return driver.Outcome{State: driver.Released, Class: driver.ClassOther}
	case wire.DescModified:
		return driver.Outcome{State: driver.Modified, Class: driver.ClassOther}
	default:
		return driver.Outcome{
			State: driver.Unknown, Class: driver.ClassProtocol,
			Err: driver.Errorf(driver.ClassProtocol, op, lookAtBroker, "the broker settled the message without an outcome"),
		}
	}
}

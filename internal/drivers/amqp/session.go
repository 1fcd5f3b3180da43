package amqp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// incomingWindow is how many transfers we take ahead: what bounds them is the credit of the links.
	incomingWindow = 1<<31 - 1
	// outgoingWindow says how many transfers we might send: as many as the peer lets us.
	outgoingWindow = 1<<31 - 1
)

// session is an AMQP session with the one link of a producer or consumer, so that the flow control of one never holds
// up another and the end of a session leaves a durable subscription in place. A transaction's coordinator has a link in
// it, too.
type session struct {
	c       *connection
	channel uint16
	aside   bool
	links   [2]*link // by our handle: the main one, the coordinator's

	mu      sync.Mutex
	begins  bool  // the peer has answered our begin
	ends    bool  // our end is sent
	over    bool  // nothing more comes: the peer has ended it, or the connection has ended
	err     error // why it is over, if we did not want it
	changed chan struct{}

	// Of the flow control (Transport, section 2.5.6). Numbers of transfer frames are serial numbers (RFC 1982).
	nextOut uint32        // of our next frame
	room    uint32        // how many frames the peer takes from that on
	nextIn  atomic.Uint32 // of the peer's next frame

	receiver *link // of the reader: the receiving link, once it is attached
}

// link is one end of a link.
type link struct {
	s      *session
	name   string
	handle uint32 // ours
	role   wire.Role

	// Guarded by session.mu.
	remoteHandle uint32
	attached     bool // the peer has answered our attach
	refused      bool // its answer has no terminus: a detach follows
	detaching    bool // our detach is sent
	gone         bool // the peer has detached it
	err          error
	peer         peerLink

	// Of a sender (Transport, section 2.6.7). Counts of deliveries are serial numbers.
	deliveryCount uint32 // of our next delivery
	credit        uint32 // for how many deliveries from that on

	producer *producer                  // of a sender; nil for the coordinator's
	consumer *consumer                  // of a receiver
	control  control                    // of another sender
	reply    func(payload []byte) error // of another receiver: takes its messages
	pieces   []byte                     // of a reply that is not whole yet
}

// peerLink is what the peer's attach says that matters.
type peerLink struct {
	maxMessage  uint64 // bytes; 0: no limit
	address     string // of its source
	sendSettle  uint8
	recvSettle  uint8
	filters     []string // names of the filters that it confirms
	offered     []string
	coordinator []string // capabilities of a coordinator
}

// beginSession begins a session. One that is aside is not a producer's or consumer's: these need not share the
// connection with it.
func (c *connection) beginSession(ctx context.Context, aside bool) (*session, error) {
	s := &session{c: c, aside: aside, changed: make(chan struct{}, 1)}
	if err := c.register(s); err != nil {
		return nil, err
	}
	begin := wire.Begin{IncomingWindow: incomingWindow, OutgoingWindow: outgoingWindow, HandleMax: wire.Some[uint32](1)}
	err := c.put(func(b []byte) []byte { return begin.AppendFrame(b, s.channel) })
	if err == nil {
		err = s.wait(ctx, func() bool { return s.begins || s.over })
	}
	if err != nil {
		return nil, err // the channel stays taken: an answer may yet come
	}
	return s, s.failure()
}

// wait waits until done, which is called with the lock, is true. It fails when ctx or the connection ends before.
func (s *session) wait(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		ok := done()
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-s.changed:
		case <-s.c.failed:
			return s.c.why()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// notify wakes wait.
func (s *session) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// failure returns why the session is over, if it is against our will.
func (s *session) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// attachTries is how often to attach to an address of Artemis that is said not to exist.
const attachTries = 5

// attach attaches a link. Artemis removes an address that it made by itself when no client uses it any more, and an
// attach at that moment is told that the address does not exist instead of making it again: it is tried anew, at once.
func (s *session) attach(ctx context.Context, l *link, frame *wire.Attach) error {
	for try := 1; ; try++ {
		err := s.attachOnce(ctx, l, frame)
		if driver.ClassOf(err) != driver.ClassNotFound || s.c.dialect != artemis || try == attachTries {
			return err
		}
	}
}

func (s *session) attachOnce(ctx context.Context, l *link, frame *wire.Attach) error {
	s.mu.Lock()
	l.attached, l.refused, l.detaching, l.gone, l.err = false, false, false, false, nil
	l.s, l.name, l.role = s, frame.Name, frame.Role
	s.links[l.handle] = l
	s.mu.Unlock()
	frame.Handle = l.handle
	if err := s.c.put(func(b []byte) []byte { return frame.AppendFrame(b, s.channel) }); err != nil {
		return err
	}
	err := s.wait(ctx, func() bool { return s.over || l.gone || l.attached && !l.refused })
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.err != nil:
		return l.err
	case s.err != nil && !l.gone: // else the refusal came first, whatever has become of the connection since
		return s.err
	case l.gone || s.over:
		return driver.Errorf(driver.ClassClosedByBroker, "", "does the address exist, with that kind (queue or topic)?",
			"the broker refused without saying why")
	default:
		return nil
	}
}

// detach detaches a link for good, which ends a subscription, and waits for the peer's answer.
func (s *session) detach(ctx context.Context, l *link) error {
	s.mu.Lock()
	send := !l.detaching && l.attached && !l.gone && !s.over
	l.detaching = true
	s.mu.Unlock()
	if !send {
		return nil
	}
	detach := wire.Detach{Handle: l.handle, Closed: true}
	if err := s.c.put(func(b []byte) []byte { return detach.AppendFrame(b, s.channel) }); err != nil {
		return err
	}
	if err := s.wait(ctx, func() bool { return l.gone || s.over }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.err
}

// close ends the session, and with it its links, and waits for the peer's answer.
func (s *session) close(ctx context.Context) {
	s.mu.Lock()
	send := !s.ends && !s.over
	s.ends = true
	s.mu.Unlock()
	if send && !s.c.Dead() && s.c.put(func(b []byte) []byte { return new(wire.End).AppendFrame(b, s.channel) }) == nil {
		bounded, cancel := context.WithTimeout(ctx, s.c.endPatience())
		_ = s.wait(bounded, func() bool { return s.over })
		cancel()
	}
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over { // else the channel stays taken
		s.c.unregister(s)
	}
}

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
		why = errClosed
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
	if !errors.Is(why, errClosed) {
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

// disposition handles what became of deliveries of ours.
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

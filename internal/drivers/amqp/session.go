package amqp

import (
	"context"
	"sync"
	"sync/atomic"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// window is how many transfers each side may send ahead: as many as the other one lets it. Credit bounds ours.
const window = 1<<31 - 1

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

	nextID uint32 // of our next delivery, over any link

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
	opening      bool // attach has not returned: it tells of the link's end, and may attach it anew
	refused      bool // its answer has no terminus: a detach follows
	detaching    bool // our detach is sent
	gone         bool // the peer has detached it
	err          error
	peer         wire.Attach // its answer, without encoded values

	// Of a sender (Transport, section 2.6.7). Counts of deliveries are serial numbers.
	deliveryCount uint32 // of our next delivery
	credit        uint32 // for how many deliveries from that on

	owner    owner                      // of a sender
	consumer *consumer                  // of a receiver
	reply    func(payload []byte) error // of another receiver: takes its messages
	pieces   []byte                     // of a reply that is not whole yet
}

// owner is told of the link over which it sends.
type owner interface {
	wake()                                       // credit or a window may have come
	settle(first, last uint32, state wire.State) // new state of deliveries
	abandon(why error)                           // nothing more comes
}

// beginSession begins a session. One that is aside is not a producer's or consumer's: these need not share the
// connection with it.
func (c *connection) beginSession(ctx context.Context, aside bool) (*session, error) {
	s := &session{c: c, aside: aside, changed: make(chan struct{}, 1)}
	if err := c.register(s); err != nil {
		return nil, err
	}
	begin := wire.Begin{IncomingWindow: window, OutgoingWindow: window, HandleMax: wire.Some[uint32](1)}
	err := c.put(func(b []byte) []byte { return begin.AppendFrame(b, s.channel) })
	if err == nil {
		err = s.wait(ctx, func() bool { return s.begins || s.over })
	}
	if err != nil {
		return nil, err // the channel stays taken: an answer may yet come
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.err
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
		case <-s.c.Over():
			return s.c.Why()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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
	l.opening, l.attached, l.refused, l.detaching, l.gone, l.err = true, false, false, false, false, nil
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
	l.opening = false
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

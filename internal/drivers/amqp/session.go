package amqp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// window is our incoming and outgoing session window, in transfers: no practical limit. Credit bounds the deliveries to
// us.
const window = 1<<31 - 1

// session is an AMQP session with the one link of a producer or consumer, so that the flow control of one never holds
// up another and the end of a session leaves a durable subscription in place. The coordinator of transactions has a
// link in it, too.
type session struct {
	c       *connection
	channel uint16
	aside   bool
	links   [2]*link // by our handle: the main one, the coordinator's

	mu      sync.Mutex
	begins  bool   // the peer has answered our begin
	ends    bool   // we have sent our end
	over    bool   // nothing more comes: the peer has ended it, or the connection has ended
	err     error  // why it is over, if we did not end it
	flows   uint64 // the peer's flow states of the session or its receiving link
	changed chan struct{}

	// Of the flow control (Transport, section 2.5.6). Numbers of transfer frames are serial numbers (RFC 1982).
	nextOut uint32        // of our next frame
	room    uint32        // how many frames the peer takes, counted from nextOut
	nextIn  atomic.Uint32 // of the peer's next frame

	nextID uint32 // of our next delivery, over any link

	receiver *link // of the reader: the receiving link, once it is attached
}

// link is one end of a link.
type link struct {
	s      *session
	name   string
	handle uint32 // ours
	role   bool

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
	credit        uint32 // number of deliveries allowed, counted from deliveryCount

	owner    owner                      // of a sender
	consumer *consumer                  // of a receiver
	reply    func(payload []byte) error // handles the messages of any other receiver
	pieces   []byte                     // of an incomplete reply
}

// owner is notified of events of the link over which it sends.
type owner interface {
	wake()                                       // credit or a window may have come
	settle(first, last uint32, state wire.State) // new state of deliveries
	abandon(why error)                           // nothing more will come
}

// beginSession begins a session. A session that is aside does not belong to a producer or consumer, and does not make
// their connection count as shared.
func (c *connection) beginSession(ctx context.Context, aside bool) (*session, error) {
	s := &session{c: c, aside: aside, changed: make(chan struct{}, 1)}
	if err := c.register(s); err != nil {
		return nil, err
	}
	err := s.put(&wire.Begin{IncomingWindow: window, OutgoingWindow: window, HandleMax: wire.Some[uint32](1)})
	if err == nil {
		err = s.wait(ctx, func() bool { return s.begins || s.over })
	}
	if err != nil {
		return nil, err // the channel stays in use: an answer may still come
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.err
}

// put sends a frame of the session.
func (s *session) put(frame interface{ AppendFrame([]byte, uint16) []byte }) error {
	return s.c.Put(func(b []byte) []byte { return frame.AppendFrame(b, s.channel) })
}

// wait waits until done, which is called with the lock, is true. It fails when ctx or the connection ends first.
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

// echo asks the peer for its flow state, and waits for it. A peer may leave the question unanswered.
func (s *session) echo(ctx context.Context) error {
	s.mu.Lock()
	seen := s.flows
	s.mu.Unlock()
	flow := s.flowState()
	flow.Echo = true
	if err := s.put(&flow); err != nil {
		return err
	}
	if err := s.wait(ctx, func() bool { return s.flows != seen || s.over }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// attachTries bounds the attempts to attach to an address that Artemis reports as missing.
const attachTries = 5

// attach attaches a link. Artemis removes an auto-created address when its last client has gone, and answers an attach
// at that moment with "does not exist" instead of creating the address again: the attach is repeated at once.
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
	if err := s.put(frame); err != nil {
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
	case s.err != nil && !l.gone: // otherwise the refusal came first, regardless of the connection's later state
		return s.err
	case l.gone || s.over:
		return driver.Errorf(driver.ClassClosedByBroker, "", "does the address exist, with that kind (queue or topic)?",
			"the broker refused without saying why")
	default:
		s.c.opened.Store(s.c.opened.Load() || !s.aside)
		return nil
	}
}

// detach detaches a link and closes it, which ends a subscription, and waits for the peer's answer.
func (s *session) detach(ctx context.Context, l *link) error {
	s.mu.Lock()
	send := !l.detaching && l.attached && !l.gone && !s.over
	l.detaching = true
	s.mu.Unlock()
	if !send {
		return nil
	}
	if err := s.put(&wire.Detach{Handle: l.handle, Closed: true}); err != nil {
		return err
	}
	if err := s.wait(ctx, func() bool { return l.gone || s.over }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.err
}

// close ends the session with its links, and waits for the peer's answer.
func (s *session) close(ctx context.Context) {
	s.mu.Lock()
	send := !s.ends && !s.over
	s.ends = true
	s.mu.Unlock()
	if send && !s.c.Dead() && s.put(new(wire.End)) == nil {
		if s.c.dialect == rabbitmq3 {
			// It sometimes loses the answer, when the process that must write it ends with the session; the session has
			// ended all the same.
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 250*time.Millisecond)
			defer cancel()
		}
		_ = s.wait(ctx, func() bool { return s.over })
	}
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over { // otherwise the channel stays in use
		s.c.unregister(s)
	}
}

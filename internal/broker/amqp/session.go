package amqp

import (
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	ourChannelMax = 1<<16 - 1
	ourHandleMax  = 1<<14 - 1
	// ourIncomingWindow is our session window, in transfer frames. Senders are limited by credit, not by the window.
	ourIncomingWindow = 8192
	ourOutgoingWindow = 1<<31 - 1
)

// The accounted memory of sessions and links, in bytes.
const (
	sessionSize = 512
	linkSize    = 512
)

// session is one session. Fields not under the connection's lock are the reader's.
type session struct {
	c       *conn
	channel uint16
	in      map[uint32]*inLink // by handle; in and out share the handles
	out     map[uint32]*outLink

	nextIncoming uint32
	windowLeft   uint32 // the rest of the incoming window

	// Under the lock.
	published    uint32 // nextIncoming in our last flow
	nextOutgoing uint32
	remoteWindow uint32 // the rest of the outgoing window
	unsettled    transport.Tracker[delivered]
}

// handle handles one frame.
func (c *conn) handle(channel uint16, body []byte) error {
	p, err := wire.ParseBody(body)
	if err != nil {
		return failDecode(err)
	}
	if !c.opened && p.Kind != wire.DescOpen {
		return fail(wire.CondFraming, "a frame before open")
	}
	switch p.Kind {
	case wire.DescOpen:
		return c.onOpen(&p.Fields)
	case wire.DescClose:
		return errClosed
	case wire.DescBegin:
		return c.onBegin(channel, &p.Fields)
	}
	if int(channel) >= len(c.sessions) || c.sessions[channel] == nil {
		return fail(wire.CondNotAllowed, "channel %d has no session", channel)
	}
	s := c.sessions[channel]
	switch p.Kind {
	case wire.DescTransfer:
		return s.onTransfer(&p.Fields, p.Payload)
	case wire.DescDisposition:
		return s.onDisposition(&p.Fields)
	case wire.DescFlow:
		return s.onFlow(&p.Fields)
	case wire.DescAttach:
		return s.onAttach(&p.Fields)
	case wire.DescDetach:
		return s.onDetach(&p.Fields)
	case wire.DescEnd:
		c.endSession(s)
		return nil
	default:
		return fail(wire.CondDecode, "an unknown performative, %#x", uint64(p.Kind))
	}
}

func (c *conn) onBegin(channel uint16, f *wire.Decoder) error {
	var b wire.Begin
	if err := b.Decode(f); err != nil {
		return failDecode(err)
	}
	for int(channel) >= len(c.sessions) {
		c.sessions = append(c.sessions, nil)
	}
	if c.sessions[channel] != nil {
		return fail(wire.CondNotAllowed, "channel %d has a session already", channel)
	}
	// Clients begin a session to learn whether the broker is stalled.
	if err := c.srv.Store.AwaitStall(c.finished, func() error { c.flush(); return nil }); err != nil {
		return err
	}
	if !c.account.Take(sessionSize) {
		return fail(wire.CondResourceLimit, "%v", store.ErrNoMemory)
	}
	s := &session{
		c: c, channel: channel, nextIncoming: b.NextOutgoingID, windowLeft: ourIncomingWindow,
		published: b.NextOutgoingID, remoteWindow: b.IncomingWindow,
		in: map[uint32]*inLink{}, out: map[uint32]*outLink{},
	}
	c.sessions[channel] = s
	answer := wire.Begin{
		RemoteChannel: wire.Some(channel), IncomingWindow: ourIncomingWindow, OutgoingWindow: ourOutgoingWindow,
		HandleMax: wire.Some[uint32](ourHandleMax),
	}
	c.send(func(out []byte) []byte { return answer.AppendFrame(out, channel) })
	return nil
}

// endSession ends a session on request of the peer.
func (c *conn) endSession(s *session) {
	c.flush()
	c.endLinks(s, false)
	c.account.Give(sessionSize)
	c.sessions[s.channel] = nil
	c.send(func(b []byte) []byte { return (&wire.End{}).AppendFrame(b, s.channel) })
}

// endLinks ends all links of a session; failed is as in [store.Consumer.Close].
func (c *conn) endLinks(s *session, failed bool) {
	for _, l := range s.in {
		l.end()
	}
	for _, l := range s.out {
		l.end(failed, false)
	}
	c.account.Give(linkSize * int64(len(s.in)+len(s.out)))
	clear(s.in)
	clear(s.out)
}

func (s *session) onFlow(f *wire.Decoder) error {
	var w wire.Flow
	if err := w.Decode(f); err != nil {
		return failDecode(err)
	}
	c := s.c
	var in *inLink
	var out *outLink
	if w.Handle.OK {
		if in, out = s.in[w.Handle.V], s.out[w.Handle.V]; in == nil && out == nil {
			return failHandle(w.Handle.V)
		}
	}
	c.mu.Lock()
	window := w.IncomingWindow
	if w.NextIncomingID.OK { // unset before the peer has our begin; our first number is 0
		window += w.NextIncomingID.V - s.nextOutgoing
	} else {
		window -= s.nextOutgoing
	}
	if window > 1<<31 { // negative in serial arithmetic
		window = 0
	}
	opened := s.remoteWindow == 0 && window > 0
	s.remoteWindow = window
	if out != nil {
		out.onFlow(&w)
	}
	c.mu.Unlock()
	if opened {
		for _, l := range s.out {
			c.makeReady(l)
		}
	} else if out != nil {
		c.makeReady(out)
	}
	if w.Echo && (in != nil || out == nil) {
		s.sendFlow(in)
	}
	return nil
}

// state returns a flow frame of the session; the lock is held.
func (s *session) state() wire.Flow {
	return wire.Flow{
		NextIncomingID: wire.Some(s.published), IncomingWindow: ourIncomingWindow,
		NextOutgoingID: s.nextOutgoing, OutgoingWindow: ourOutgoingWindow,
	}
}

// sendFlow renews the incoming window, and the credit of l unless it is nil. The reader calls it.
func (s *session) sendFlow(l *inLink) {
	s.c.send(func(b []byte) []byte {
		s.published, s.windowLeft = s.nextIncoming, ourIncomingWindow
		state := s.state()
		if l != nil {
			state.Handle, state.DeliveryCount = wire.Some(l.handle), wire.Some(l.count)
			state.LinkCredit = wire.Some(l.credit)
		}
		return state.AppendFrame(b, s.channel)
	})
}

func (s *session) onDetach(f *wire.Decoder) error {
	var d wire.Detach
	if err := d.Decode(f); err != nil {
		return failDecode(err)
	}
	var byUs bool
	switch in, out := s.in[d.Handle], s.out[d.Handle]; {
	case in != nil:
		s.c.flush()
		delete(s.in, d.Handle)
		in.end()
		byUs = in.detached
	case out != nil:
		delete(s.out, d.Handle)
		out.end(false, d.Closed)
		byUs = out.detached
	default:
		return failHandle(d.Handle)
	}
	s.c.account.Give(linkSize)
	if !byUs {
		s.detach(d.Handle, d.Closed, nil)
	}
	return nil
}

// detach sends a detach with the error f, unless it is nil.
func (s *session) detach(handle uint32, closed bool, f *wire.Error) {
	detach := wire.Detach{Handle: handle, Closed: closed, Error: f}
	s.c.send(func(b []byte) []byte { return detach.AppendFrame(b, s.channel) })
}

// delivered is a sent delivery.
type delivered struct {
	link *outLink // nil: settled
	id   uint64   // of the consumer
}

// forget removes all deliveries of a link.
func (s *session) forget(l *outLink) {
	s.unsettled.Each(0, s.unsettled.Next, func(n uint64) {
		if s.unsettled.Get(n).link == l {
			s.unsettled.Remove(n)
		}
	})
}

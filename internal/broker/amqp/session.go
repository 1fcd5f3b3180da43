package amqp

import (
	"errors"

	"github.com/perfmq/perfmq/internal/broker/store"
)

const (
	ourChannelMax = 1<<16 - 1
	ourHandleMax  = 1<<14 - 1
	// ourIncomingWindow is how many transfer frames may come before we renew the window; credit is what holds senders back.
	ourIncomingWindow = 8192
	ourOutgoingWindow = 1<<31 - 1
)

// What sessions and links count against the broker's memory, in bytes.
const (
	sessionSize = 512
	linkSize    = 512
)

// session is one session. What is not under the connection's lock is the reader's.
type session struct {
	c       *conn
	channel uint16
	ended   bool // by us, with an error: all is ignored until the peer ends it too
	in      []*inLink
	out     []*outLink
	listed  int64 // bytes of these lists

	nextIncoming uint32
	windowLeft   uint32 // frames that the peer may still send

	// Under the lock.
	published    uint32 // nextIncoming, as of the last time we said so
	nextOutgoing uint32
	remoteWindow uint32 // frames that we may still send
	unsettled    unsettled
}

// handle handles one frame.
func (c *conn) handle(channel uint16, body []byte) error {
	f := values(body)
	descriptor, list := f.performative()
	if f.bad {
		return fail(condDecode, "not a performative")
	}
	if !c.greeted && descriptor != descOpen {
		return fail(condFraming, "a frame before open")
	}
	switch descriptor {
	case descOpen:
		return c.onOpen(list)
	case descClose:
		return errClosed
	case descBegin:
		return c.onBegin(channel, list)
	}
	if int(channel) >= len(c.sessions) || c.sessions[channel] == nil {
		return fail(condNotAllowed, "channel %d has no session", channel)
	}
	s := c.sessions[channel]
	var err error
	switch descriptor {
	case descTransfer:
		err = s.onTransfer(list, f.b)
	case descDisposition:
		err = s.onDisposition(list)
	case descFlow:
		err = s.onFlow(list)
	case descAttach:
		err = s.onAttach(list)
	case descDetach:
		err = s.onDetach(list)
	case descEnd:
		c.endSession(s, nil)
		return nil
	default:
		return fail(condDecode, "an unknown performative, %#x", descriptor)
	}
	var ends sessionFailure
	if errors.As(err, &ends) {
		c.failSession(s, ends.failure)
		return nil
	}
	return err
}

func (c *conn) onBegin(channel uint16, f fields) error {
	b := f.begin()
	if f.bad {
		return fail(condDecode, "begin")
	}
	for int(channel) >= len(c.sessions) {
		c.sessions = append(c.sessions, nil)
	}
	if c.sessions[channel] != nil {
		return fail(condNotAllowed, "channel %d has a session already", channel)
	}
	if !c.account.Take(sessionSize) {
		return fail(condResourceLimit, "%v", store.ErrNoMemory)
	}
	s := &session{
		c: c, channel: channel, nextIncoming: b.nextOutgoing, windowLeft: ourIncomingWindow,
		published: b.nextOutgoing, remoteWindow: b.incomingWindow,
	}
	c.sessions[channel] = s
	c.send(func(out []byte) []byte {
		out, frame := beginFrame(out, frameAMQP, channel)
		out, at := beginDescribed(out, descBegin)
		out = appendUint(appendUshort(out, channel), 0)
		out = appendUint(appendUint(out, ourIncomingWindow), ourOutgoingWindow)
		return finishFrame(finish(appendUint(out, ourHandleMax), at, 5), frame)
	})
	return nil
}

// endSession ends a session because the peer did.
func (c *conn) endSession(s *session, f *failure) {
	c.flush()
	c.endLinks(s, false)
	c.account.Give(sessionSize)
	c.sessions[s.channel] = nil
	if !s.ended {
		c.send(func(b []byte) []byte { return appendEnding(b, s.channel, descEnd, f) })
	}
}

// failSession ends a session because of an error.
func (c *conn) failSession(s *session, f *failure) {
	if s.ended {
		return
	}
	c.flush()
	c.endLinks(s, false)
	s.ended = true
	c.send(func(b []byte) []byte { return appendEnding(b, s.channel, descEnd, f) })
}

// endLinks ends all links of a session. failed is as in [store.Consumer.Close].
func (c *conn) endLinks(s *session, failed bool) {
	for _, l := range s.in {
		if l != nil {
			l.end()
			c.account.Give(linkSize)
		}
	}
	for _, l := range s.out {
		if l != nil {
			_ = l.end(failed, false) // it fails only when a subscription is to be removed
			c.account.Give(linkSize)
		}
	}
	c.account.Give(s.listed)
	s.in, s.out, s.listed = nil, nil, 0
}

func (s *session) onFlow(f fields) error {
	w := f.flow()
	if f.bad {
		return fail(condDecode, "flow")
	}
	if s.ended {
		return nil
	}
	c := s.c
	var in *inLink
	var out *outLink
	if w.hasHandle {
		if in, out = s.link(w.handle); in == nil && out == nil {
			return failSession(condUnattached, "handle %d is not attached", w.handle)
		}
	}
	c.mu.Lock()
	window := w.incomingWindow
	if w.hasNextIncoming { // until the peer has our begin it does not know our first number, which is 0
		window += w.nextIncoming - s.nextOutgoing
	} else {
		window -= s.nextOutgoing
	}
	if window > 1<<31 { // less than nothing
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
			if l != nil {
				c.makeReady(l)
			}
		}
	} else if out != nil {
		c.makeReady(out)
	}
	switch {
	case in != nil && w.echo:
		in.sendFlow()
	case w.echo && out == nil:
		s.sendFlow()
	}
	return nil
}

// link returns the link that the peer has under a handle.
func (s *session) link(handle uint32) (*inLink, *outLink) {
	if int64(handle) < int64(len(s.in)) && s.in[handle] != nil {
		return s.in[handle], nil
	}
	if int64(handle) < int64(len(s.out)) {
		return nil, s.out[handle]
	}
	return nil, nil
}

// state returns what a flow says of the session; the lock is held.
func (s *session) state() flowState {
	return flowState{nextIncoming: s.published, incomingWindow: ourIncomingWindow, nextOutgoing: s.nextOutgoing}
}

// renew is called by the reader, with the lock held, before it sends a flow.
func (s *session) renew() {
	s.published, s.windowLeft = s.nextIncoming, ourIncomingWindow
}

func (s *session) sendFlow() {
	s.c.send(func(b []byte) []byte {
		s.renew()
		return appendFlow(b, s.channel, s.state())
	})
}

func (s *session) onDetach(f fields) error {
	d := f.detach()
	if f.bad {
		return fail(condDecode, "detach")
	}
	if s.ended {
		return nil
	}
	in, out := s.link(d.handle)
	if in != nil || out != nil {
		s.c.account.Give(linkSize)
	}
	switch {
	case in != nil:
		s.c.flush()
		s.in[d.handle] = nil
		in.end()
		if !in.detached {
			s.c.send(func(b []byte) []byte { return appendDetach(b, s.channel, d.handle, d.closed, nil) })
		}
	case out != nil:
		s.out[d.handle] = nil
		err := out.end(false, d.closed)
		if !out.detached {
			s.c.send(func(b []byte) []byte { return appendDetach(b, s.channel, d.handle, d.closed, err) })
		}
	default:
		return failSession(condUnattached, "handle %d is not attached", d.handle)
	}
	return nil
}

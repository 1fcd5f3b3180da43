package amqp

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// closedConnection begins the reason of a connection's end.
const closedConnection = "the broker closed the connection"

// maxChannels bounds the sessions of one connection, even if the peer allows more.
const maxChannels = 1 << 14

// connection is an AMQP connection: one goroutine reads it, its users write.
type connection struct {
	*transport.Conn
	driver *amqpDriver
	dialect
	delays   bool                     // the broker supports delayed deliveries
	relays   bool                     // the broker takes messages over links without an address
	hostname string                   // of the broker, as our open frame names it
	prefixes [driver.Topic + 1]string // of addresses, by the kind of destination
	frames   *wire.FrameReader
	maxFrame int           // of the peer
	channels int           // the largest number of channels
	owed     time.Duration // heartbeat interval that the peer requires; 0 for none

	// Of the reader: the sessions by the peer's channel, and the consumers with messages to settle.
	channelsIn []*session
	settle     []*consumer
	admitted   bool // the peer has begun a session: it accepts the connection as such
	unfinished int  // bytes of incomplete messages

	opened  atomic.Bool // a producer or consumer was opened on it
	leaving atomic.Bool // we have begun to close it
	links   atomic.Uint64

	mu       sync.Mutex
	sessions []*session // by our channel; nil where one is free
	next     uint16     // where to start looking for a free channel
	live     int        // sessions of producers and consumers
	node     node
	cbs      node
}

// start starts the reader. The handshake is over.
func (c *connection) start() {
	patience := c.driver.cfg.Options.IdleTimeout
	// Heartbeats: Transport, section 2.4.5.
	c.Start(c.idle, c.run, c.owed, patience, wire.AppendHeartbeat, "-o idle-timeout")
}

// run reads until the connection ends, and ends its sessions.
func (c *connection) run() {
	c.Fail(fault(c.read()))
	c.mu.Lock()
	sessions := slices.Clone(c.sessions)
	c.mu.Unlock()
	for _, s := range sessions {
		if s != nil {
			s.end(c.Why())
		}
	}
}

// idle is called when all received frames have been processed: the moment to settle their messages.
func (c *connection) idle() {
	for i, k := range c.settle {
		k.listed = false
		k.settleAll()
		c.settle[i] = nil
	}
	c.settle = c.settle[:0]
	c.Out.Flush()
}

// End implements [transport.Shared].
func (c *connection) End(ctx context.Context) {
	c.Leave(ctx, func(ctx context.Context) {
		c.leaving.Store(true)
		_ = c.Put(new(wire.End).AppendClose)
		select {
		case <-c.Over(): // the peer's close ends the connection
		case <-ctx.Done():
		}
	})
}

// read processes frames from the broker, and returns why it ended.
func (c *connection) read() error {
	for {
		f, err := c.frames.Next()
		if err != nil {
			return err
		}
		c.Heard.Add(1)
		if len(f.Body) == 0 {
			continue // a heartbeat
		}
		if f.Type != wire.FrameAMQP {
			return unexpected("frame of type", f.Type)
		}
		p, err := wire.ParseBody(f.Body)
		if err != nil {
			return err
		}
		if err := c.handle(f.Channel, &p); err != nil {
			return err
		}
	}
}

// handle processes one frame.
func (c *connection) handle(channel uint16, p *wire.Body) error {
	switch p.Kind {
	case wire.DescBegin:
		return c.begun(channel, p)
	case wire.DescClose:
		var f wire.End
		if err := f.Decode(&p.Fields); err != nil {
			return err
		}
		return c.closed(&f)
	case wire.DescOpen:
		return unexpected("open on channel", 0)
	}
	if int(channel) >= len(c.channelsIn) || c.channelsIn[channel] == nil {
		return unexpected("frame on channel", channel)
	}
	s := c.channelsIn[channel]
	switch p.Kind {
	case wire.DescTransfer:
		return s.transfer(p)
	case wire.DescDisposition:
		return s.disposition(p)
	case wire.DescFlow:
		return s.flow(p)
	case wire.DescAttach:
		return s.attached(p)
	case wire.DescDetach:
		return s.detached(p)
	case wire.DescEnd:
		c.channelsIn[channel] = nil
		return s.ended(p)
	default:
		return unexpected("frame of kind", uint64(p.Kind))
	}
}

// begun handles the peer's begin, which must be the answer to our begin.
func (c *connection) begun(channel uint16, p *wire.Body) error {
	var f wire.Begin
	if err := f.Decode(&p.Fields); err != nil {
		return err
	}
	var s *session
	c.mu.Lock()
	if f.RemoteChannel.OK && int(f.RemoteChannel.V) < len(c.sessions) {
		s = c.sessions[f.RemoteChannel.V]
	}
	c.mu.Unlock()
	if s == nil || int(channel) >= maxChannels {
		return unexpected("begin on channel", channel)
	}
	for int(channel) >= len(c.channelsIn) {
		c.channelsIn = append(c.channelsIn, nil)
	}
	if c.channelsIn[channel] != nil {
		return unexpected("begin on channel", channel)
	}
	c.channelsIn[channel] = s
	c.admitted = true
	s.begun(&f)
	return nil
}

// closed handles the peer's close, and returns why the connection ends.
func (c *connection) closed(f *wire.End) error {
	if c.leaving.Load() && f.Error == nil { // the answer to ours
		return transport.ErrClosed
	}
	_ = c.Put(new(wire.End).AppendClose)
	if f.Error != nil && !c.admitted {
		return refusedOpen(f.Error)
	}
	return c.endOf(closedConnection, !c.opened.Load(), driver.ClassConnectionLost, f.Error)
}

// register assigns a channel to a session. Channels are used in turn, not the lowest free one: RabbitMQ 4 assigns a
// begin on the channel of a session that has just ended to that session, and does not answer it.
func (c *connection) register(s *session) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Dead() {
		return c.Why()
	}
	for range c.channels {
		at := c.next
		c.next = uint16((int(at) + 1) % c.channels) //nolint:gosec // below maxChannels
		for int(at) >= len(c.sessions) {
			c.sessions = append(c.sessions, nil)
		}
		if c.sessions[at] == nil {
			s.channel = at
			c.sessions[at] = s
			if !s.aside {
				c.live++
			}
			if c.live > 1 {
				c.WasShared.Store(true)
			}
			return nil
		}
	}
	return driver.Errorf(driver.ClassFull, "", "use more connections: leave out --shared-connections",
		"the broker's limit of sessions per connection is %d", c.channels)
}

func (c *connection) unregister(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[s.channel] == s {
		c.sessions[s.channel] = nil
		if !s.aside {
			c.live--
		}
	}
}

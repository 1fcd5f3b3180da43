package amqp

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// maxChannels bounds the sessions of one connection, even if the peer allows more.
	maxChannels = 1 << 14
	// closeTimeout bounds the wait for the broker's answer to a close.
	closeTimeout = time.Second
)

// connection is an AMQP connection: one goroutine reads it, its users write.
type connection struct {
	*transport.Ending
	driver *amqpDriver
	host   string // host:port
	dialect
	speaks   dialect // by the broker's open frame, even if the user chose another
	version  string  // the broker's, from its open frame
	delays   bool    // the broker supports delayed deliveries
	net      net.Conn
	raw      *transport.Metered // below TLS; the same as net without TLS
	in       *transport.Input
	frames   *wire.FrameReader
	out      *transport.Output
	maxFrame int           // of the peer
	channels int           // the largest number of channels
	owed     time.Duration // heartbeat interval that the peer requires; 0 for none

	// Of the reader: the sessions by the peer's channel, and the consumers with messages to settle.
	channelsIn []*session
	settle     []*consumer
	admitted   bool // the peer has begun a session: it accepts the connection as such
	unfinished int  // bytes of incomplete messages

	pulse     transport.Pulse // heartbeats (Transport, section 2.4.5)
	heard     atomic.Uint32   // frames read
	wasShared atomic.Bool     // the connection has had more than one producer or consumer at a time

	opened  atomic.Bool // a producer or consumer was opened on it
	leaving atomic.Bool // we have begun to close it

	mu       sync.Mutex
	sessions []*session // by our channel; nil where one is free
	next     uint16     // where to start looking for a free channel
	live     int        // sessions of producers and consumers
	names    map[string]bool
	manager  manager
	running  sync.WaitGroup
}

// start starts the reader. The handshake is over.
func (c *connection) start() {
	c.in.OnIdle(c.idle)
	c.running.Go(func() {
		c.fail(fault(c.read()))
		c.in.Release()
		c.mu.Lock()
		sessions := slices.Clone(c.sessions)
		cause := c.Why()
		c.mu.Unlock()
		for _, s := range sessions {
			if s != nil {
				s.end(cause)
			}
		}
	})
	c.pulse = transport.Pulse{
		Ending: c.Ending, Out: c.out, In: c.raw, Heard: &c.heard, Owed: c.owed, Patience: c.driver.cfg.Options.IdleTimeout,
		Beat:   func() { _ = c.put(wire.AppendHeartbeat) }, // fails only when the connection has ended
		Silent: func() { c.fail(protocol.Unheard(c.driver.cfg.Options.IdleTimeout, "-o idle-timeout")) },
	}
	c.pulse.Start()
}

// idle is called when all received frames have been processed: the moment to settle their messages.
func (c *connection) idle() {
	for i, k := range c.settle {
		k.listed = false
		k.settleAll()
		c.settle[i] = nil
	}
	c.settle = c.settle[:0]
	c.out.Flush()
}

// fail ends the connection. Only the first cause counts.
func (c *connection) fail(cause error) { c.Fail(cause, c.out, c.raw) }

// End implements [transport.Shared].
func (c *connection) End(ctx context.Context) {
	if !c.Dead() && ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		c.leaving.Store(true)
		_ = c.out.Put(new(wire.Close).AppendFrame)
		c.out.Flush()
		select {
		case <-c.Over(): // the peer's close ends the connection
		case <-ctx.Done():
		}
		cancel()
	}
	c.fail(transport.ErrClosed)
	c.pulse.Stop()
	c.running.Wait()
	c.out.Wait()
}

// put sends a small frame, without waiting for room.
func (c *connection) put(frame func([]byte) []byte) error {
	if err := c.gather(frame); err != nil {
		return err
	}
	c.out.Flush()
	return nil
}

// gather is put for frames that leave with the next flush. It fails if there are too many of them: the broker does not
// read.
func (c *connection) gather(frame func([]byte) []byte) error {
	err := c.out.Put(frame)
	if err != nil {
		c.fail(err)
	}
	return err
}

// read processes frames from the broker, and returns why it ended.
func (c *connection) read() error {
	for {
		f, err := c.frames.Next()
		if err != nil {
			return err
		}
		c.heard.Add(1)
		if len(f.Body) == 0 {
			continue // a heartbeat
		}
		if f.Type != wire.FrameAMQP {
			return protocolError("a frame of type %d", f.Type)
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
		var f wire.Close
		if err := f.Decode(&p.Fields); err != nil {
			return err
		}
		return c.closed(&f)
	case wire.DescOpen:
		return protocolError("a second open frame")
	}
	if int(channel) >= len(c.channelsIn) || c.channelsIn[channel] == nil {
		return protocolError("a frame on channel %d, where no session has begun", channel)
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
		return protocolError("a frame of kind %#x", uint64(p.Kind))
	}
}

// begun handles the peer's begin, which must be the answer to our begin.
func (c *connection) begun(channel uint16, p *wire.Body) error {
	var f wire.Begin
	if err := f.Decode(&p.Fields); err != nil {
		return err
	}
	if !f.RemoteChannel.OK {
		return protocolError("a begin that is not an answer to ours")
	}
	var s *session
	c.mu.Lock()
	if int(f.RemoteChannel.V) < len(c.sessions) {
		s = c.sessions[f.RemoteChannel.V]
	}
	c.mu.Unlock()
	if s == nil {
		return protocolError("a begin for channel %d, on which we began no session", f.RemoteChannel.V)
	}
	if int(channel) >= maxChannels {
		return protocolError("a begin on channel %d, beyond what we allowed", channel)
	}
	for int(channel) >= len(c.channelsIn) {
		c.channelsIn = append(c.channelsIn, nil)
	}
	if c.channelsIn[channel] != nil {
		return protocolError("a second begin on channel %d", channel)
	}
	c.channelsIn[channel] = s
	c.admitted = true
	s.begun(&f)
	return nil
}

// closed handles the peer's close, and returns why the connection ends.
func (c *connection) closed(f *wire.Close) error {
	if c.leaving.Load() && f.Error == nil { // the answer to ours
		return transport.ErrClosed
	}
	_ = c.put(new(wire.Close).AppendFrame)
	switch {
	case f.Error != nil && !c.admitted:
		return refusedOpen(f.Error)
	case f.Error != nil && !c.opened.Load():
		return c.remote("the broker closed the connection", driver.ClassConnectionLost, "", f.Error)
	case f.Error != nil:
		return c.lost("the broker closed the connection", driver.ClassConnectionLost, f.Error)
	}
	return driver.Errorf(driver.ClassConnectionLost, "", lookAtBroker,
		"the broker closed the connection without saying why")
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
				c.wasShared.Store(true)
			}
			return nil
		}
	}
	return driver.Errorf(driver.ClassFull, "", "use more connections", "the broker allows %d sessions per connection",
		c.channels)
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

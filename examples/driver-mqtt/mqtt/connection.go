package mqtt

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	mostPending = 65_000     // messages in flight: requests need packet identifiers, too
	headRoom    = 256 << 10  // of a received packet beyond the largest body, in bytes
	inboxSize   = 1024       // messages that wait for a consumer; with more the connection is not read
	failed      = byte(0x80) // reason codes from here on are failures (MQTT 5, section 2.4)
	rejected    = byte(0x83) // the receiver is not willing to accept the message

	defaultCredit = 1000
	probed        = "perfmq/probe" // the name of no subscription
)

// connection is an MQTT client. One goroutine reads it, its users write.
type connection struct {
	*transport.Conn
	maxBody   int
	keepAlive time.Duration
	stages    driver.Stages
	resumed   bool                  // the broker had the session
	quota     chan struct{}         // has an element for each message in flight (Receive Maximum)
	inbox     chan *packets.Publish // of a consumer, else nil
	unwanted  chan struct{}         // closed when no message is wanted any more
	closed    atomic.Bool

	mu      sync.Mutex
	lastID  uint16
	answers map[uint16]func(error) // by packet identifier, what waits for the broker's answer
}

// dial opens a connection to the first host that accepts it. With an inbox it is that of a consumer.
func (d *mqttDriver) dial(
	ctx context.Context, spec driver.Connection, connect *packets.Connect, inbox chan *packets.Publish,
) (*connection, error) {
	return transport.Dial(ctx, protocol(), &d.cfg, &spec, func(
		ctx context.Context, host transport.Endpoint, conn net.Conn, raw *transport.Metered,
	) (*connection, error) {
		limit := transport.TimeLeft(ctx)
		c := &connection{
			Conn: transport.NewConn(host, conn, raw, &d.mem), maxBody: d.cfg.MaxBody, stages: spec.Stages, inbox: inbox,
			unwanted: make(chan struct{}), answers: map[uint16]func(error){}, keepAlive: d.cfg.Options.KeepAlive,
		}
		connect.ClientID = cmp.Or(connect.ClientID, identity(spec.Name))
		if err := c.Shake(ctx, func() error { return c.login(connect, &d.cfg.Target) }); err != nil {
			if driver.ClassOf(err) == driver.ClassTimeout {
				err = protocol().Unanswered("CONNECT", d.cfg.Target.TLS, limit, err)
			}
			return nil, err
		}
		patience := 2 * c.keepAlive * time.Duration(d.cfg.Options.QoS) // at most once, a busy producer hears nothing
		ping := func(b []byte) []byte { return append(b, packets.PINGREQ<<4, 0) }
		c.Start(c.idle, c.read, c.keepAlive, patience, ping, "-o keep-alive")
		return c, nil
	})
}

// login sends CONNECT and reads CONNACK.
func (c *connection) login(connect *packets.Connect, t *transport.Target) error {
	connect.ProtocolName, connect.ProtocolVersion, connect.KeepAlive = "MQTT", 5, uint16(c.keepAlive/time.Second)
	connect.Username, connect.UsernameFlag = t.User, t.User != ""
	connect.Password, connect.PasswordFlag = []byte(t.Password), t.Password != ""
	if _, err := connect.WriteTo(c.Net); err != nil {
		return err
	}
	p, err := c.next()
	if err != nil {
		return err
	}
	ack, ok := p.Content.(*packets.Connack)
	switch {
	case !ok:
		return broken("it answered CONNECT by %s", p.PacketType())
	case ack.ReasonCode >= failed:
		return refused(ack.ReasonCode, cmp.Or(ack.Properties.ReasonString, ack.Reason()))
	}
	quota := mostPending
	if most := ack.Properties.ReceiveMaximum; most != nil {
		quota = min(quota, int(*most))
	}
	if seconds := ack.Properties.ServerKeepAlive; seconds != nil {
		c.keepAlive = time.Duration(*seconds) * time.Second
	}
	c.quota, c.resumed = make(chan struct{}, quota), ack.SessionPresent
	return nil
}

// refused returns the error about a reason code of the broker.
func refused(code byte, reason string) *driver.Error {
	class := map[byte]driver.Class{
		packets.ConnackBadUsernameOrPassword: driver.ClassAuth, packets.ConnackNotAuthorized: driver.ClassAuth,
		packets.ConnackQuotaExceeded: driver.ClassFull, packets.ConnackPacketTooLarge: driver.ClassTooLarge,
		packets.ConnackUnsupportedProtocolVersion: driver.ClassUnsupported,
	}[code]
	return driver.Errorf(cmp.Or(class, driver.ClassOther), "", transport.HintLog,
		"the broker says: %.200q (reason code 0x%02x)", reason, code)
}

// appending returns a function that appends a packet.
func appending(p packets.Packet) func([]byte) []byte {
	return func(b []byte) []byte {
		w := bytes.NewBuffer(b)
		_, _ = p.WriteTo(w)
		return w.Bytes()
	}
}

// next reads a packet. Its length has a limit, as the library takes memory for all of it.
func (c *connection) next() (*packets.ControlPacket, error) {
	length, digit := 0, byte(0x80)
	for n := 1; digit >= 0x80 && n < 5; n++ {
		head, err := c.In.Peek(n + 1)
		if err != nil {
			return nil, err
		}
		digit = head[n]
		length |= int(digit&0x7f) << (7 * (n - 1))
	}
	if most := c.maxBody + headRoom; digit >= 0x80 || length > most {
		return nil, transport.TooLarge("", "a packet of", length, most)
	}
	p, err := packets.ReadPacket(c.In)
	if err != nil && driver.ClassOf(err) == driver.ClassOther {
		err = broken("%w", err)
	}
	return p, err
}

func broken(format string, args ...any) error {
	format = "the broker broke the protocol: " + format
	return driver.Errorf(driver.ClassProtocol, "", transport.HintProxy, format, args...)
}

// idle is called when all received packets have been processed.
func (c *connection) idle() {
	c.Heard.Add(1)
	c.Out.Flush()
}

// read processes packets until the connection ends.
func (c *connection) read() {
	p, err := c.next()
	for ; err == nil; p, err = c.next() {
		if err = c.handle(p.Content); err != nil {
			break
		}
	}
	c.Fail(err)
}

func (c *connection) handle(p packets.Packet) error {
	switch p := p.(type) {
	case *packets.Publish:
		select {
		case c.inbox <- p:
		case <-c.unwanted:
		case <-c.Over():
		}
	case *packets.Puback:
		c.answered(p.PacketID, p.ReasonCode, p.Properties.ReasonString)
	case *packets.Suback:
		c.answered(p.PacketID, append(p.Reasons, failed)[0], p.Properties.ReasonString)
	case *packets.Unsuback:
		c.answered(p.PacketID, 0, "")
	case *packets.Disconnect:
		e := refused(p.ReasonCode, cmp.Or(p.Properties.ReasonString, p.Reason()))
		e.Class = driver.ClassClosedByBroker.LossBy(e.Class)
		return e
	}
	return nil
}

// expect returns a free packet identifier. answered gets the broker's answer, if one comes.
func (c *connection) expect(answered func(error)) uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.lastID++; c.lastID == 0 || c.answers[c.lastID] != nil; {
		c.lastID++
	}
	c.answers[c.lastID] = answered
	return c.lastID
}

func (c *connection) answered(id uint16, code byte, reason string) {
	c.mu.Lock()
	answered := c.answers[id]
	delete(c.answers, id)
	c.mu.Unlock()
	var err error
	if code >= failed {
		err = refused(code, reason)
	}
	if answered != nil {
		answered(err)
	}
}

// request sends a packet and waits for its answer.
func (c *connection) request(ctx context.Context, op string, packet func(id uint16) packets.Packet) error {
	answer := make(chan error, 1)
	id := c.expect(func(err error) { answer <- err })
	err := c.Put(appending(packet(id)))
	if err == nil {
		select {
		case err = <-answer:
		case <-c.Over():
			err = c.Why()
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return transport.Explain(op, err)
}

// Close implements [driver.Held].
func (c *connection) Close(ctx context.Context) error {
	c.close(ctx, &packets.Properties{}, func(context.Context) {})
	return nil
}

// close ends the connection, once: by bye, and DISCONNECT. The broker closes it when it has read all.
func (c *connection) close(ctx context.Context, properties *packets.Properties, bye func(context.Context)) {
	if c.closed.Swap(true) {
		return
	}
	close(c.unwanted)
	began, lost := time.Now(), c.Dead()
	c.Leave(ctx, func(ctx context.Context) {
		bye(ctx)
		_ = c.Put(appending(&packets.Disconnect{Properties: properties}))
		select {
		case <-c.Over():
		case <-ctx.Done():
		}
	})
	if !lost && ctx.Err() == nil {
		c.stages.Ended(driver.StageClose, began)
	}
}

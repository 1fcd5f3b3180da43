// Package mqtt is a driver of perfmq for MQTT 5, an example of a protocol of one's own. Its packets are from
// github.com/eclipse/paho.golang; connections, TLS and gathered writing are from perfmq's package transport.
//
// MQTT has topics and no queues. Each producer and consumer is an MQTT client with a connection of its own: a client
// has one session, and in it one subscription to a topic. A durable subscription is a session that does not expire; a
// shared one is $share/NAME/TOPIC. Time and ID of a message are user properties.
//
// Left out: quality of service 0 and 2, requests and replies, texts, time to live, retained messages, topic
// aliases, wildcards.
package mqtt

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	mostPending = 65_000     // messages in flight: requests need packet identifiers, too
	headRoom    = 256 << 10  // of a received packet beyond the largest body, in bytes
	inboxSize   = 1024       // messages that wait for a consumer; with more the connection is not read
	failed      = byte(0x80) // reason codes from here on are failures (MQTT 5, section 2.4)
	rejected    = byte(0x83) // the receiver is not willing to accept the message

	qos           = byte(1)
	defaultCredit = 1000
	probed        = "perfmq/probe" // the name of no subscription
)

// Options are the settings of this protocol: -o keep-alive=10s.
type Options struct {
	KeepAlive time.Duration `opt:"keep-alive" help:"an idle connection shows a sign of life within this time; 0: none"`
}

func defaults() *Options { return &Options{KeepAlive: 30 * time.Second} }

// protocol returns the syntax of URLs, and how to find out that a port speaks MQTT: CONNECT, and the type of CONNACK.
func protocol() *transport.Protocol {
	return &transport.Protocol{
		Title: "MQTT", Schemes: []string{"mqtt", "mqtts", "mqtt+ssl"}, Encrypted: []string{"mqtts", "mqtt+ssl"},
		PlainPort: "1883", TLSPort: "8883",
		Hello: "\x10\x0d\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x00", Answers: []string{"\x20"},
	}
}

// Factory describes the protocol, and opens drivers for it.
func Factory() driver.Factory {
	f := driver.Factory{
		Name: "mqtt", Title: "MQTT 5", Client: driver.Native, Hosts: protocol().Hosts,
		Capabilities: driver.Capabilities{TLS: true, Connects: true, Unattached: true, Topic: driver.KindCapabilities{
			Exists: true, DurableSubscription: true, SharedSubscription: true, Properties: true, Credit: true,
			Reject: true, Redelivered: true,
		}},
	}
	check := func(s *transport.Settings[Options], fail transport.Fail) {
		if k := s.Options.KeepAlive; k < 0 || k > math.MaxUint16*time.Second {
			fail("", "option keep-alive=%s: must be from 1s to 65535s, or 0", k)
		}
	}
	return transport.Factory(f, protocol(), defaults, check, func(s transport.Settings[Options]) driver.Driver {
		return &mqttDriver{factory: f, cfg: s}
	})
}

// mqttDriver is a [driver.Driver] and [driver.Connector].
type mqttDriver struct {
	factory driver.Factory
	cfg     transport.Settings[Options]
	mem     transport.Buffers
	sharing sync.Mutex // held to subscribe: Artemis fails where two clients make a shared subscription at once
}

// Connect implements [driver.Connector].
func (d *mqttDriver) Connect(ctx context.Context, spec driver.Connection) (driver.Held, error) {
	return d.dial(ctx, spec, &packets.Connect{CleanStart: true}, 0)
}

// Close implements [driver.Driver]: producers and consumers have closed their connections.
func (d *mqttDriver) Close(context.Context) error { return nil }

// names are the rules for topics: other signs have a meaning to MQTT, or to some broker.
func names() library.Rules { return library.Rules{Signs: "/_-", Most: math.MaxUint16} }

// connection is an MQTT client. One goroutine reads it, its users write.
type connection struct {
	*transport.Conn
	maxBody   int
	keepAlive time.Duration
	stages    driver.Stages
	resumed   bool                  // the broker had the session
	quota     chan struct{}         // has an element for each message in flight (Receive Maximum)
	inbox     chan *packets.Publish // received messages; closed at the end
	unwanted  chan struct{}         // closed when no message is wanted any more
	leaves    string                // the subscription that ends with the connection
	bye       packets.Properties    // of DISCONNECT
	closed    atomic.Bool
	credit    *driver.Meter // of Send: waits for the broker's answers to earlier messages
	socket    *driver.Meter // of Send: waits for the connection to take more
	input     *driver.Meter // of Run: waits for messages

	mu      sync.Mutex
	lastID  uint16
	answers map[uint16]func(driver.Outcome) // by packet identifier, what waits for the broker's answer; nil at the end
}

// dial opens a connection to the first host that accepts it. inbox messages may wait for a consumer.
func (d *mqttDriver) dial(
	ctx context.Context, spec driver.Connection, connect *packets.Connect, inbox int,
) (*connection, error) {
	return transport.Dial(ctx, protocol(), &d.cfg, &spec, func(
		ctx context.Context, host transport.Endpoint, conn net.Conn, raw *transport.Metered,
	) (*connection, error) {
		limit := transport.TimeLeft(ctx)
		c := &connection{
			Conn: transport.NewConn(host, conn, raw, &d.mem), maxBody: d.cfg.MaxBody, stages: spec.Stages,
			inbox: make(chan *packets.Publish, inbox), unwanted: make(chan struct{}),
			answers: map[uint16]func(driver.Outcome){}, keepAlive: d.cfg.Options.KeepAlive,
			credit: driver.NewMeter(), socket: driver.NewMeter(), input: driver.NewMeter(),
		}
		connect.ClientID = cmp.Or(connect.ClientID, spec.Name+"-"+strings.ToLower(rand.Text()[:10]))
		if err := c.Shake(ctx, func() error { return c.login(connect, &d.cfg.Target) }); err != nil {
			if driver.ClassOf(err) == driver.ClassTimeout {
				err = protocol().Unanswered("CONNECT", d.cfg.Target.TLS, limit, err)
			}
			return nil, err
		}
		ping := func(b []byte) []byte { return append(b, packets.PINGREQ<<4, 0) }
		c.Start(c.Out.Flush, c.read, c.keepAlive, 2*c.keepAlive, ping, "-o keep-alive")
		return c, nil
	})
}

// Waits implements [driver.Waiter].
func (c *connection) Waits() driver.Waits {
	return driver.Waits{
		Credit: c.credit.Wait(), Socket: c.socket.Wait(), Input: c.input.Idle(), Reader: c.Raw.Reading(),
	}
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
	length, size := uint64(0), 0
	for n := 2; size == 0 && n <= 5; n++ {
		head, err := c.In.Peek(n)
		if err != nil {
			return nil, err
		}
		length, size = binary.Uvarint(head[1:])
	}
	if most := uint64(c.maxBody + headRoom); size == 0 || length > most {
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

// read processes packets until the connection ends.
func (c *connection) read() {
	p, err := c.next()
	for ; err == nil; p, err = c.next() {
		c.Heard.Add(1)
		if err = c.handle(p.Content); err != nil {
			break
		}
	}
	c.Fail(err)
	c.end(c.Why())
	close(c.inbox)
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
		c.answered(p.PacketID, packets.UnsubackSuccess, "")
	case *packets.Disconnect:
		e := refused(p.ReasonCode, cmp.Or(p.Properties.ReasonString, p.Reason()))
		e.Class = driver.ClassClosedByBroker.LossBy(e.Class)
		return e
	}
	return nil
}

// expect returns a free packet identifier. It calls answered once: for the broker's answer, or at the end without one.
func (c *connection) expect(answered func(driver.Outcome)) (uint16, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil {
		return 0, c.Why()
	}
	for c.lastID++; c.lastID == 0 || c.answers[c.lastID] != nil; {
		c.lastID++
	}
	c.answers[c.lastID] = answered
	return c.lastID, nil
}

// answered takes an answer of the broker.
func (c *connection) answered(id uint16, code byte, reason string) {
	c.mu.Lock()
	answered := c.answers[id]
	delete(c.answers, id)
	c.mu.Unlock()
	var o driver.Outcome
	if code >= failed {
		o = driver.Outcome{State: driver.Rejected, Err: refused(code, reason)}
	}
	if answered != nil {
		answered(o)
	}
}

// end ends the waits for answers: there will be none.
func (c *connection) end(why error) {
	c.mu.Lock()
	left := c.answers
	c.answers = nil
	c.mu.Unlock()
	for _, answered := range left {
		answered(driver.Outcome{State: driver.Unknown, Err: why})
	}
}

// request sends a packet and waits for its answer.
func (c *connection) request(ctx context.Context, op string, packet func(id uint16) packets.Packet) error {
	answer := make(chan error, 1)
	id, err := c.expect(func(o driver.Outcome) { answer <- o.Err })
	if err == nil {
		_ = c.Put(appending(packet(id))) // if it fails, the connection ends, and the wait with it
		select {
		case err = <-answer:
		case <-ctx.Done():
			c.answered(id, 0, "") // nobody waits for it now
			err = ctx.Err()
		}
	}
	return transport.Explain(op, err)
}

// unsubscribe ends a subscription. The broker's answer shows that it has read all acknowledgements before.
func (c *connection) unsubscribe(ctx context.Context, op, filter string) error {
	return c.request(ctx, op, func(id uint16) packets.Packet {
		return &packets.Unsubscribe{PacketID: id, Topics: []string{filter}}
	})
}

// Close implements [driver.Consumer] and [driver.Held]. The broker closes the connection when it has read all.
func (c *connection) Close(ctx context.Context) error {
	if c.closed.Swap(true) {
		return nil
	}
	close(c.unwanted)
	began, lost := time.Now(), c.Dead()
	c.Leave(ctx, func(ctx context.Context) {
		if c.leaves != "" {
			_ = c.unsubscribe(ctx, "", c.leaves)
		}
		_ = c.Put(appending(&packets.Disconnect{Properties: &c.bye}))
		select {
		case <-c.Over():
		case <-ctx.Done():
		}
	})
	if !lost && ctx.Err() == nil {
		c.stages.Ended(driver.StageClose, began)
	}
	return nil
}

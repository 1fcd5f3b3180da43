package amqp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// dial opens a connection to the first host that accepts it.
func (d *amqpDriver) dial(ctx context.Context, spec driver.Connection) (*connection, error) {
	return transport.Dial(ctx, protocol.AMQP(), &d.cfg, &spec, func(
		ctx context.Context, host transport.Endpoint, conn net.Conn, raw *transport.Metered,
	) (*connection, error) {
		return d.open(ctx, host, conn, raw, spec)
	})
}

// open opens an AMQP connection over conn, which is raw or TLS on top of it.
func (d *amqpDriver) open(
	ctx context.Context, host transport.Endpoint, conn net.Conn, raw *transport.Metered, spec driver.Connection,
) (*connection, error) {
	limit := transport.TimeLeft(ctx)
	c := &connection{
		Conn: transport.NewConn(host, conn, raw, &d.mem), driver: d,
		node: node{address: artemisNode}, cbs: node{address: cbsNode},
	}
	c.frames = wire.NewFrameReader(c.In, maxReceive)
	h := handshake{c: c, host: host, spec: spec}
	if err := c.Shake(ctx, func() error { return fault(h.run()) }); err != nil {
		return nil, h.explain(limit, err)
	}
	c.start()
	return c, nil
}

// handshake opens a connection: the SASL layer and the open frames (Security, section 5.3; Transport, section 2.4.1).
type handshake struct {
	c        *connection
	host     transport.Endpoint
	spec     driver.Connection
	greeting string // the first bytes from the peer
}

func (h *handshake) run() error {
	if err := h.header(wire.HeaderSASL); err != nil {
		return err
	}
	if err := h.login(); err != nil {
		return err
	}
	if err := h.header(wire.HeaderAMQP); err != nil {
		return err
	}
	return h.open()
}

// errHeader reports a protocol header other than the one of the login.
var errHeader = errors.New("the peer demands another protocol header")

// header exchanges protocol headers (Transport, section 2.2).
func (h *handshake) header(want string) error {
	if err := h.write([]byte(want)); err != nil {
		return err
	}
	got, err := h.c.frames.ReadProtocolHeader()
	if h.greeting == "" {
		if h.greeting = string(got[:]); err != nil {
			h.greeting = strings.TrimRight(h.greeting, "\x00") // fewer than eight were read
		}
	}
	switch {
	case err != nil:
		return err
	case string(got[:]) == want:
		return nil
	case want == wire.HeaderAMQP:
		return protocolError("the header %q", got[:])
	default:
		return errHeader
	}
}

func (h *handshake) write(b []byte) error {
	_, err := h.c.Net.Write(b)
	return err
}

// frame reads the next frame that is not a heartbeat.
func (h *handshake) frame(kind uint8) (wire.Body, error) {
	for {
		f, err := h.c.frames.Next()
		switch {
		case err != nil:
			return wire.Body{}, err
		case f.Type != kind:
			return wire.Body{}, unexpected("frame of type", f.Type)
		case len(f.Body) == 0:
			continue
		}
		return wire.ParseBody(f.Body)
	}
}

// open exchanges open frames.
func (h *handshake) open() error {
	c := h.c
	ours := c.driver.openFrame(h.host, h.spec)
	c.hostname = ours.Hostname
	if err := h.write(ours.AppendFrame(nil)); err != nil {
		return err
	}
	p, err := h.frame(wire.FrameAMQP)
	if err != nil {
		return err
	}
	switch p.Kind {
	case wire.DescOpen:
	case wire.DescClose:
		return h.refused(&p)
	default:
		return unexpected("frame of kind", uint64(p.Kind))
	}
	var open wire.Open
	if err := open.Decode(&p.Fields); err != nil {
		return err
	}
	largest := open.MaxFrameSize.Or(maxSend)
	if largest < wire.MinMaxFrameSize {
		return protocolError("an open frame with a max-frame-size of %d, below the least of %d", largest,
			wire.MinMaxFrameSize)
	}
	c.maxFrame = int(min(largest, maxSend))
	c.channels = min(int(open.ChannelMax.Or(1<<16-1))+1, maxChannels)
	c.owed = time.Duration(open.IdleTimeout) * time.Millisecond
	c.delays = slices.Contains(open.OfferedCapabilities, capDelayed)
	c.relays = slices.Contains(open.OfferedCapabilities, capRelay)
	text := func(key string) string { return wire.LookupText(open.Properties, key) }
	product, version := cmp.Or(text("product"), text("platform")), text("version") // Solace has a platform only
	if c.dialect = dialect(protocol.Broker(product, version)); c.dialect == plain {
		c.prefixes = [...]string{driver.Queue: text("queue-prefix"), driver.Topic: text("topic-prefix")}
	}
	if n := max(len(c.prefixes[driver.Queue]), len(c.prefixes[driver.Topic])); n > maxPrefix {
		return protocolError("an open frame with a prefix of %d bytes for addresses", n)
	}
	if c.dialect == ibmmq { // it would end the connection with the second session
		c.channels = 1
	}
	// A broker that refuses us has to open the connection before it can close it.
	failed := wire.Lookup(open.Properties, "amqp:connection-establishment-failed")
	if failed.Bool() {
		if p, err = h.frame(wire.FrameAMQP); err != nil {
			return err
		}
		return h.refused(&p)
	}
	c.driver.Tell(product, version)
	return nil
}

// capDelayed is the capability of brokers that support the annotation x-opt-delivery-delay.
const capDelayed = "DELAYED_DELIVERY"

const (
	// maxPrefix bounds a prefix of addresses, in bytes.
	maxPrefix = 100
	// maxSend bounds the frames that we send, even if the peer takes larger ones.
	maxSend = 256 << 10
	// maxReceive bounds the frames that the peer may send.
	maxReceive = 64 << 10
)

// refused returns the reason for which the broker closes a connection that it has not opened.
func (h *handshake) refused(p *wire.Body) error {
	var f wire.End
	if p.Kind != wire.DescClose || f.Decode(&p.Fields) != nil {
		return unexpected("frame of kind", uint64(p.Kind))
	}
	_ = h.write(new(wire.End).AppendClose(nil)) // the broker may not read it
	if f.Error == nil {
		return plain.remote(closedConnection, driver.ClassConnect, "", nil)
	}
	return refusedOpen(f.Error)
}

// openFrame identifies this client. Artemis shows the container ID as client ID.
func (d *amqpDriver) openFrame(host transport.Endpoint, spec driver.Connection) *wire.Open {
	c := &d.cfg
	return &wire.Open{
		ContainerID:  cmp.Or(spec.ClientID, spec.Name, "perfmq-"+rand.Text()), // Classic refuses one without a name
		Hostname:     cmp.Or(c.Options.VirtualHost, host.Host),
		MaxFrameSize: wire.Some[uint32](maxReceive),
		ChannelMax:   wire.Some[uint16](maxChannels - 1),
		IdleTimeout:  uint32(min(c.Options.IdleTimeout.Milliseconds(), 1<<31)), //nolint:gosec // in range
		Properties: wire.AppendTexts(nil, true,
			"product", "perfmq", "version", transport.Version, "connection-name", spec.Name),
	}
}

package amqp

import (
	"bytes"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// handshake exchanges protocol headers and SASL frames. An unsupported header is answered with a supported one, and the
// connection ends.
func (c *conn) handshake() error {
	authenticated := c.srv.Authenticate == nil
	for {
		header, err := c.frames.ReadProtocolHeader()
		if err != nil {
			return err
		}
		switch {
		case string(header[:]) == wire.HeaderAMQP && authenticated:
			c.send(func(b []byte) []byte { return append(b, wire.HeaderAMQP...) })
			c.begun = true
			return nil
		case string(header[:]) == wire.HeaderSASL:
			if err := c.sasl(); err != nil {
				return err
			}
			authenticated = true
		default:
			wanted := wire.HeaderAMQP
			if !authenticated {
				wanted = wire.HeaderSASL
			}
			c.send(func(b []byte) []byte { return append(b, wanted...) })
			return errHandshake
		}
	}
}

func (c *conn) sasl() error {
	offer := wire.SASL{Kind: wire.DescMechanisms, Mechanisms: []string{"PLAIN"}}
	if c.srv.Authenticate == nil {
		offer.Mechanisms = []string{"ANONYMOUS", "PLAIN"}
	}
	c.send(func(b []byte) []byte { return offer.AppendFrame(append(b, wire.HeaderSASL...)) })
	f, err := c.frame()
	if err != nil {
		return err
	}
	p, err := wire.ParseBody(f.Body)
	if err != nil || f.Type != wire.FrameSASL || p.Kind != wire.DescInit {
		return errHandshake
	}
	init := wire.SASL{Kind: p.Kind}
	if err := init.Decode(&p.Fields); err != nil {
		return errHandshake
	}
	outcome := wire.SASL{Kind: wire.DescOutcome, Code: wire.SASLAuth}
	if c.admits(init.Mechanism, init.Data) {
		outcome.Code = wire.SASLOK
	}
	c.send(outcome.AppendFrame)
	if outcome.Code != wire.SASLOK {
		return errHandshake
	}
	return nil
}

// admits checks a SASL response; PLAIN is [authorize] NUL user NUL password (RFC 4616).
func (c *conn) admits(mechanism string, response []byte) bool {
	authenticate := c.srv.Authenticate
	switch mechanism {
	case "ANONYMOUS":
		return authenticate == nil
	case "PLAIN":
		parts := bytes.Split(response, []byte{0})
		return len(parts) == 3 && (authenticate == nil || authenticate(string(parts[1]), string(parts[2])))
	}
	return false
}

// onOpen answers the peer's open.
func (c *conn) onOpen(f *wire.Decoder) error {
	var o wire.Open
	if err := o.Decode(f); err != nil {
		return failDecode(err)
	}
	if c.opened {
		return fail(wire.CondFraming, "a second open")
	}
	c.opened, c.container = true, o.ContainerID
	c.maxFrame = int(min(max(o.MaxFrameSize.Or(1<<20), wire.MinMaxFrameSize), 1<<20))
	c.mu.Lock()
	if o.IdleTimeout > 0 {
		c.heartbeat = max(time.Duration(o.IdleTimeout)*time.Millisecond/2, time.Millisecond)
	}
	c.out = c.appendOpen(c.out)
	c.mu.Unlock()
	c.wakeWriter()
	return nil
}

// appendOpen appends our open.
func (c *conn) appendOpen(b []byte) []byte {
	props := wire.BeginMap(nil)
	props = wire.AppendStr(wire.AppendSymbol(props, "product"), store.Product)
	props = wire.AppendStr(wire.AppendSymbol(props, "version"), transport.Version)
	wire.EndCompound(props, 0, 4)
	o := wire.Open{
		ContainerID: "perfmq", MaxFrameSize: wire.Some[uint32](ourMaxFrame), ChannelMax: wire.Some[uint16](ourChannelMax),
		OfferedCapabilities: []string{"SHARED-SUBS", "DELAYED_DELIVERY"}, Properties: props,
		IdleTimeout: uint32(max(1, min(c.srv.IdleTimeout.Milliseconds()/2, 1<<31))), //nolint:gosec // bounded
	}
	return o.AppendFrame(b)
}

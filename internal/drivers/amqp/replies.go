package amqp

import (
	"bytes"
	"encoding/hex"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// capRelay is the capability of brokers that take messages to the address in their property to, over a link without an
// address (Anonymous Terminus for Message Routing 1.0). RabbitMQ 4 takes them from its first version on.
const capRelay = "ANONYMOUS-RELAY"

const (
	capTemporary = "temporary-queue"         // as Qpid JMS asks for one
	capVolatile  = "rabbitmq:volatile-queue" // RabbitMQ from 4.2 on
)

var _ driver.Addressed = (*consumer)(nil)

// Address implements [driver.Addressed].
func (k *consumer) Address() string { return k.address }

// dynamicSource returns the source of a consumer with [driver.ConsumerSpec.Dynamic]: a node that lives as long as the
// link.
func (c *connection) dynamicSource() wire.Terminus {
	t := wire.Terminus{
		Kind: wire.DescSource, Dynamic: true, ExpiryPolicy: wire.ExpireLinkDetach, Capabilities: []string{capTemporary},
	}
	if c.dialect == rabbitmq {
		t.Capabilities[0] = capVolatile
	}
	return t
}

// replyAddress returns the address of the consumer: of a dynamic node the one that the broker gave it.
func (k *consumer) replyAddress() (string, error) {
	if !k.spec.Dynamic {
		return k.lease.Conn.address(k.spec.Destination), nil
	}
	switch address := k.link.peer.Source.Address.V; {
	case address == "":
		return "", driver.Errorf(driver.ClassUnsupported, "", "give --reply-to queue://NAME",
			"the broker made no queue for replies")
	case len(address) > driver.MaxAddress:
		return "", driver.Errorf(driver.ClassTooLarge, "", "",
			"the broker's address of a queue has %d bytes", len(address))
	default:
		return address, nil
	}
}

// replies has what a producer of requests or replies needs.
type replies struct {
	requests bool
	ids      []byte   // the encoded correlation ID
	replyTo  []byte   // of the last request
	groups   [][]byte // by variant
	own      []byte   // the encoded properties of the message that is sent, if they are its own
	buffer   []byte   // of own
}

// propertiesOf returns the encoded properties of a request or reply, valid until the next call; nil for the others,
// which have those of their variant.
func (p *producer) propertiesOf(m *driver.Message) []byte {
	if m.ReplyTo == "" && len(m.Correlation) == 0 && len(m.To) == 0 {
		p.own = nil
		return nil
	}
	var properties wire.Properties
	b := p.ids[:0]
	if len(m.Correlation) > 0 {
		b = appendMessageID(b, m.Correlation)
		if properties.CorrelationID = b; p.requests {
			properties.MessageID = b
		}
	}
	if m.ReplyTo != "" {
		if string(p.replyTo) != m.ReplyTo { // another one after a reconnect
			p.replyTo = []byte(m.ReplyTo)
		}
		properties.ReplyTo = p.replyTo
	}
	if len(m.To) > 0 {
		properties.To = m.To
	}
	if group := p.groups[m.Variant]; len(group) > 0 {
		if properties.GroupID = group; m.Group != "" {
			copy(group, m.Group) // as long
		}
	}
	p.ids = b
	p.buffer = properties.AppendSection(p.buffer[:0])
	p.own = p.buffer
	return p.own
}

// idPrefix begins the text of a message ID of another type than string; the encoded value in hexadecimal digits
// follows.
const idPrefix = "AMQP:"

// appendMessageID encodes the message ID with that text; see [messageIDText].
func appendMessageID(b, text []byte) []byte {
	if digits, ok := bytes.CutPrefix(text, []byte(idPrefix)); ok {
		at := len(b)
		encoded, err := hex.AppendDecode(b, digits)
		if id := wire.NewDecoder(encoded[at:]); err == nil && wire.IsMessageID(&id) {
			return encoded
		}
		b = encoded[:at]
	}
	return wire.AppendStr(b, text)
}

// messageIDText returns the text of an encoded message ID, which may be nil: in place, or appended to scratch[:0].
func messageIDText(scratch, encoded []byte) (text, buffer []byte) {
	d := wire.NewDecoder(encoded)
	if code := d.Peek(); code == wire.CodeStr8 || code == wire.CodeStr32 || encoded == nil {
		return d.Str(), scratch
	}
	scratch = hex.AppendEncode(append(scratch[:0], idPrefix...), encoded)
	return scratch, scratch
}

// readCorrelation reads what replies need from the properties of a message.
func (dec *decoder) readCorrelation(encoded []byte) error {
	var p wire.Properties
	if err := p.Decode(encoded); err != nil {
		return unreadable("properties", err)
	}
	d := &dec.delivery
	d.ReplyTo = p.ReplyTo
	d.Correlation, dec.idTexts[0] = messageIDText(dec.idTexts[0], p.CorrelationID)
	d.MessageID, dec.idTexts[1] = messageIDText(dec.idTexts[1], p.MessageID)
	return nil
}

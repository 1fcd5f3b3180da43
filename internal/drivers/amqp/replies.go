package amqp

import (
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
		b = wire.AppendMessageID(b, m.Correlation)
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

// readCorrelation reads what replies need from the properties of a message.
func (dec *decoder) readCorrelation(encoded []byte) error {
	var p wire.Properties
	if err := p.Decode(encoded); err != nil {
		return unreadable("properties", err)
	}
	d := &dec.delivery
	d.ReplyTo = p.ReplyTo
	d.Correlation, dec.idTexts[0] = wire.MessageIDText(dec.idTexts[0], p.CorrelationID)
	d.MessageID, dec.idTexts[1] = wire.MessageIDText(dec.idTexts[1], p.MessageID)
	return nil
}

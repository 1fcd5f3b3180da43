package amqp_test

import (
	"testing"
	"time"

	client "github.com/Azure/go-amqp"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// content is the source of a message, for us and for go-amqp; set has a bit for each property that it has.
type content struct {
	durable     bool
	priority    uint8
	ttl, number uint32
	text, key   string
	n           int64
	x           float64
	body        []byte
	kind        uint8
	set         uint16
}

func (c *content) has(bit int) bool { return c.set>>bit&1 == 1 }

func (c *content) theirs() *client.Message {
	m := &client.Message{
		Header: &client.MessageHeader{
			Durable: c.durable, Priority: c.priority, TTL: time.Duration(c.ttl) * time.Millisecond,
			FirstAcquirer: !c.durable, DeliveryCount: c.number,
		},
		DeliveryAnnotations: client.Annotations{"d": c.text, int64(1): c.n},
		ApplicationProperties: map[string]any{
			c.key: c.text, c.key + "n": c.n, c.key + "x": c.x, c.key + "u": c.number, c.key + "b": c.durable,
		},
		Footer: client.Annotations{"f": c.body},
	}
	text := func(bit int) *string {
		if !c.has(bit) {
			return nil
		}
		return &c.text
	}
	moment := time.UnixMilli(c.n)
	p := &client.MessageProperties{
		To: text(0), Subject: text(1), ReplyTo: text(2), ContentType: text(3), ContentEncoding: text(4),
		GroupID: text(5), ReplyToGroupID: text(6),
	}
	if c.has(7) {
		p.MessageID, p.CorrelationID = uint64(c.n), c.text
	}
	if c.has(8) {
		p.MessageID, p.CorrelationID = client.UUID{1, byte(c.n), 15: byte(c.number)}, append([]byte{}, c.body...)
	}
	if c.has(9) {
		p.UserID = append([]byte{1}, c.body...)
	}
	if c.has(10) {
		p.AbsoluteExpiryTime, p.CreationTime = &moment, &moment
	}
	if c.has(11) {
		p.GroupSequence = &c.number
	}
	m.Properties = p
	switch c.kind {
	case 0:
		m.Data = [][]byte{c.body}
	case 1:
		m.Data = [][]byte{c.body, []byte(c.text)}
	case 2:
		m.Value = c.text
	case 3:
		m.Sequence = [][]any{{c.text, c.n, c.x}}
	}
	return m
}

func (c *content) ours(t testing.TB) []byte {
	t.Helper()
	b := (&amqp.Header{
		Durable: c.durable, Priority: amqp.Some(c.priority), TTL: amqp.Some(c.ttl), FirstAcquirer: !c.durable,
		DeliveryCount: c.number,
	}).AppendSection(nil)
	at := len(amqp.AppendDescriptor(b, amqp.DescDeliveryAnnotations))
	b = amqp.BeginMap(amqp.AppendDescriptor(b, amqp.DescDeliveryAnnotations))
	b = amqp.AppendStr(amqp.AppendSymbol(b, "d"), c.text)
	b = amqp.AppendLong(amqp.AppendLong(b, 1), c.n)
	amqp.EndCompound(b, at, 4)
	text := func(bit int) []byte {
		if !c.has(bit) {
			return nil
		}
		return append([]byte{}, c.text...)
	}
	p := amqp.Properties{
		To: text(0), Subject: text(1), ReplyTo: text(2), ContentType: text(3), ContentEncoding: text(4),
		GroupID: text(5), ReplyToGroupID: text(6),
	}
	if c.has(7) {
		p.MessageID, p.CorrelationID = encoded(t, uint64(c.n)), encoded(t, c.text)
	}
	if c.has(8) {
		p.MessageID = encoded(t, amqp.UUID{1, byte(c.n), 15: byte(c.number)})
		p.CorrelationID = encoded(t, append([]byte{}, c.body...))
	}
	if c.has(9) {
		p.UserID = append([]byte{1}, c.body...)
	}
	if c.has(10) {
		p.AbsoluteExpiryTime, p.CreationTime = amqp.Some(c.n), amqp.Some(c.n)
	}
	if c.has(11) {
		p.GroupSequence = amqp.Some(c.number)
	}
	if c.set&0xfff == 0 { // go-amqp writes a section without properties; AppendSection writes none
		b = append(amqp.AppendDescriptor(b, amqp.DescProperties), amqp.CodeList0)
	}
	b = p.AppendSection(b)
	b = append(amqp.AppendDescriptor(b, amqp.DescApplicationProperties), pairs(t,
		amqp.Property{Key: c.key, Value: c.text}, amqp.Property{Key: c.key + "n", Value: c.n},
		amqp.Property{Key: c.key + "x", Value: c.x}, amqp.Property{Key: c.key + "u", Value: c.number},
		amqp.Property{Key: c.key + "b", Value: c.durable},
	)...)
	switch c.kind {
	case 0:
		b = amqp.AppendData(b, c.body)
	case 1:
		b = amqp.AppendData(amqp.AppendData(b, c.body), []byte(c.text))
	case 2:
		b = amqp.AppendTextValue(b, c.text)
	case 3:
		b = append(amqp.AppendDescriptor(b, amqp.DescSequence), encodedList(t, c.text, c.n, c.x)...)
	}
	at = len(amqp.AppendDescriptor(b, amqp.DescFooter))
	b = amqp.BeginMap(amqp.AppendDescriptor(b, amqp.DescFooter))
	b = amqp.AppendBinary(amqp.AppendSymbol(b, "f"), c.body)
	amqp.EndCompound(b, at, 2)
	return b
}

package amqp

import (
	"errors"
	"time"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// message is an AMQP message, its own [store.Content], without its header and delivery annotations.
type message struct {
	store.Message
	bare []byte // sections from the message annotations on
	size int    // bytes of memory

	// The values of sections of bare, without descriptors; nil if there are none.
	properties, application []byte
	body                    []byte
	bodyKind                wire.Descriptor // 0 for none
	text                    bool            // the body is an amqp-value string
}

// read decodes b into n, which refers to b. group is the last message's group, a string to reuse.
func (n *message) read(b []byte, group string) error {
	var m wire.Message
	if err := m.Decode(b); err != nil {
		return err
	}
	if m.Forward == nil {
		return errNoBody
	}
	n.size = len(b)
	n.Content, n.Durable = n, m.Header.Durable
	n.Priority = min(m.Header.Priority.Or(wire.NormalPriority), 9)
	if m.Header.TTL.OK {
		n.Expires = time.Now().UnixMilli() + int64(m.Header.TTL.V)
	}
	n.bare, n.properties, n.application = m.Forward, m.Properties, m.ApplicationProperties
	n.bodyKind, n.body = m.BodyKind, m.Body
	switch m.BodyKind {
	case wire.DescData:
		if n.body = m.Payload(nil); m.BodySections > 1 { // a copy
			n.size += cap(n.body)
		}
	case wire.DescValue:
		switch m.Body[0] {
		case wire.CodeStr8, wire.CodeStr32:
			n.body, n.text = m.Payload(nil), true
		case wire.CodeBin8, wire.CodeBin32:
			n.body = m.Payload(nil)
		case wire.CodeNull:
			n.body = nil
		}
	}
	if m.MessageAnnotations != nil {
		if err := n.annotations(m.MessageAnnotations); err != nil {
			return err
		}
	}
	if m.Properties != nil {
		return n.readProperties(m.Properties, group)
	}
	return nil
}

// errNoBody is the error of a message without any section from the message annotations on.
var errNoBody = errors.New("a message without a body")

// readProperties reads absolute-expiry-time and group-id (Messaging, section 3.2.4).
func (n *message) readProperties(properties []byte, group string) error {
	d := wire.NewDecoder(properties)
	p, _ := d.List()
	for range 8 { // message-id, user-id, to, subject, reply-to, correlation-id, content-type, content-encoding
		p.Skip()
	}
	if expires := p.Timestamp(); expires.V > 0 && n.Expires == 0 {
		n.Expires = expires.V
	}
	p.Skip() // creation-time
	if g := p.Bytes(); string(g) == group {
		n.Group = group
	} else {
		n.Group = string(g)
	}
	return p.Err()
}

// annotations reads the delivery time, as annotated by JMS clients.
func (n *message) annotations(annotations []byte) error {
	d := wire.NewDecoder(annotations)
	p, _ := d.Map()
	for p.More() {
		if p.Peek() != wire.CodeSym8 {
			p.Skip()
			p.Skip()
			continue
		}
		switch string(p.Bytes()) {
		case "x-opt-delivery-time":
			if v, ok := p.Scalar().(int64); ok && v > 0 && v < farFuture {
				n.NotBefore = time.UnixMilli(v).UnixNano()
			}
		case "x-opt-delivery-delay":
			if v, ok := p.Scalar().(int64); ok && v > 0 && v < farFuture/2 && n.NotBefore == 0 {
				n.NotBefore = time.Now().Add(time.Duration(v) * time.Millisecond).UnixNano()
			}
		default:
			p.Skip()
		}
	}
	return p.Err()
}

// farFuture bounds times in milliseconds: in nanoseconds they fit an int64.
const farFuture = 9_000_000_000_000

func (n *message) Size() int { return n.size }

// Body returns the data sections, the text or binary of an amqp-value, or any other body encoded.
func (n *message) Body() []byte { return n.body }

func (n *message) WithBody(body []byte) store.Content {
	bare := append([]byte(nil), n.beforeBody()...)
	if n.text {
		bare = wire.AppendTextValue(bare, body)
	} else {
		bare = wire.AppendData(bare, body)
	}
	var changed message
	if err := changed.read(bare, ""); err != nil {
		return n // impossible: the sections were read before
	}
	return &changed
}

// beforeBody returns the sections before the body.
func (n *message) beforeBody() []byte {
	d := wire.NewDecoder(n.bare)
	for d.More() {
		at := len(n.bare) - len(d.Rest())
		if d.Descriptor() >= wire.DescData {
			return n.bare[:at]
		}
		d.Skip()
	}
	return n.bare
}

func (n *message) Text() bool { return n.text }

func (n *message) Properties() []store.Property {
	d := wire.NewDecoder(n.application)
	pairs, _ := d.Map()
	list := make([]store.Property, 0, min(pairs.Len()/2, 64))
	for pairs.More() {
		key, _ := pairs.Scalar().(string)
		if v := pairs.Scalar(); v != nil && pairs.Err() == nil {
			list = append(list, store.Property{Key: key, Value: v})
		}
	}
	return list
}

// Property returns one application property, or nil, without decoding the others.
func (n *message) Property(key string) any {
	d := wire.Lookup(n.application, key)
	return d.Scalar()
}

// Addressing implements [store.Content].
func (n *message) Addressing() store.Addressing {
	var p wire.Properties
	_ = p.Decode(n.properties) // what cannot be read is left out
	return store.Addressing{
		MessageID: idText(p.MessageID), CorrelationID: idText(p.CorrelationID), ReplyTo: string(p.ReplyTo),
	}
}

// to returns the property to.
func (n *message) to() string {
	var p wire.Properties
	_ = p.Decode(n.properties)
	return string(p.To)
}

// idText returns an encoded ID as text.
func idText(id []byte) string {
	text, _ := wire.MessageIDText(nil, id)
	return string(text)
}

// idOf returns the ID of a text, encoded; nil for none. It reverses idText.
func idOf(text string) []byte {
	if text == "" {
		return nil
	}
	return wire.AppendMessageID(nil, text)
}

// encoded encodes a message of another protocol, from the properties on.
func encoded(m *store.Message) []byte {
	body, a := m.Content.Body(), m.Content.Addressing()
	p := wire.Properties{
		MessageID: idOf(a.MessageID), ReplyTo: []byte(a.ReplyTo), CorrelationID: idOf(a.CorrelationID),
		AbsoluteExpiryTime: wire.Opt[int64]{V: m.Expires, OK: m.Expires != 0},
	}
	if a.ReplyTo == "" {
		p.ReplyTo = nil
	}
	if m.Group != "" {
		p.GroupID = []byte(m.Group)
	}
	b := p.AppendSection(make([]byte, 0, len(body)+256))
	if list := m.Content.Properties(); len(list) > 0 {
		b = appendApplication(b, list)
	}
	if m.Content.Text() && utf8.Valid(body) {
		return wire.AppendTextValue(b, body)
	}
	return wire.AppendData(b, body)
}

func appendApplication(b []byte, list []store.Property) []byte {
	b = wire.AppendDescriptor(b, wire.DescApplicationProperties)
	at := len(b)
	b = wire.BeginMap(b)
	for _, p := range list {
		b = wire.AppendStr(b, p.Key)
		var err error
		if b, err = wire.AppendScalar(b, p.Value); err != nil {
			b = wire.AppendNull(b)
		}
	}
	wire.EndCompound(b, at, 2*len(list))
	return b
}

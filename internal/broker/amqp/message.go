package amqp

import (
	"errors"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// content is an encoded AMQP message without its header and delivery annotations. It implements
// [store.Content].
type content struct {
	bare   []byte // sections from the message annotations on
	size   int    // bytes of memory
	format uint32

	// The values of sections of bare, without descriptors; nil if there are none.
	properties, application []byte
	body                    []byte
	bodyKind                wire.Descriptor // 0 for none
	text                    bool            // the body is an amqp-value string
}

// node is a message with its content, in one allocation.
type node struct {
	msg     store.Message
	content content
}

// read decodes b into n, which refers to b. group is the last message's group, a string to reuse.
func (n *node) read(b []byte, group string) error {
	var m wire.Message
	if err := m.Decode(b); err != nil {
		return err
	}
	if m.Forward == nil {
		return errNoBody
	}
	n.content.size += len(b)
	c := &n.content
	n.msg.Content, n.msg.Durable = c, m.Header.Durable
	n.msg.Priority = min(m.Header.Priority.Or(wire.NormalPriority), 9)
	if m.Header.TTL.OK {
		n.msg.Expires = time.Now().UnixMilli() + int64(m.Header.TTL.V)
	}
	c.bare, c.properties, c.application = m.Forward, m.Properties, m.ApplicationProperties
	c.bodyKind, c.body = m.BodyKind, m.Body
	switch m.BodyKind {
	case wire.DescData:
		if c.body = m.Payload(nil); m.BodySections > 1 { // a copy
			c.size += cap(c.body)
		}
	case wire.DescValue:
		switch m.Body[0] {
		case wire.CodeStr8, wire.CodeStr32:
			c.body, c.text = m.Payload(nil), true
		case wire.CodeBin8, wire.CodeBin32:
			c.body = m.Payload(nil)
		case wire.CodeNull:
			c.body = nil
		}
	}
	if m.MessageAnnotations != nil {
		if err := n.annotations(m.MessageAnnotations); err != nil {
			return err
		}
	}
	if m.Properties != nil {
		return n.addressing(m.Properties, group)
	}
	return nil
}

// errNoBody is the error of a message without any section from the message annotations on.
var errNoBody = errors.New("a message without a body")

// addressing reads absolute-expiry-time and group-id of the properties (Messaging, section 3.2.4).
func (n *node) addressing(properties []byte, group string) error {
	d := wire.NewDecoder(properties)
	p, _ := d.List()
	for range 8 { // message-id, user-id, to, subject, reply-to, correlation-id, content-type, content-encoding
		p.Skip()
	}
	if expires := p.Timestamp(); expires.V > 0 && n.msg.Expires == 0 {
		n.msg.Expires = expires.V
	}
	p.Skip() // creation-time
	if g := p.Str(); string(g) == group {
		n.msg.Group = group
	} else {
		n.msg.Group = string(g)
	}
	return p.Err()
}

// annotations reads the delivery time, as annotated by JMS clients.
func (n *node) annotations(annotations []byte) error {
	d := wire.NewDecoder(annotations)
	p, _ := d.Map()
	for p.More() {
		if p.Peek() != wire.CodeSym8 {
			p.Skip()
			p.Skip()
			continue
		}
		switch string(p.Symbol()) {
		case "x-opt-delivery-time":
			if v, ok := integer(&p); ok && v > 0 && v < farFuture {
				n.msg.NotBefore = time.UnixMilli(v).UnixNano()
			}
		case "x-opt-delivery-delay":
			if v, ok := integer(&p); ok {
				n.delay(v)
			}
		default:
			p.Skip()
		}
	}
	return p.Err()
}

// integer returns the next value if it is an integer or a timestamp.
func integer(d *wire.Decoder) (int64, bool) {
	if d.Peek() == wire.CodeTimestamp {
		t := d.Timestamp()
		return t.V, t.OK
	}
	return d.Integer()
}

// farFuture bounds times in milliseconds: in nanoseconds they fit an int64.
const farFuture = 9_000_000_000_000

func (n *node) delay(millis int64) {
	if millis > 0 && millis < farFuture/2 && n.msg.NotBefore == 0 {
		n.msg.NotBefore = time.Now().Add(time.Duration(millis) * time.Millisecond).UnixNano()
	}
}

func (c *content) Size() int { return c.size }

// Body returns the data sections, the text or binary of an amqp-value, or any other body encoded.
func (c *content) Body() []byte { return c.body }

func (c *content) WithBody(body []byte) store.Content {
	bare := append([]byte(nil), c.beforeBody()...)
	if c.text {
		bare = wire.AppendTextValue(bare, body)
	} else {
		bare = wire.AppendData(bare, body)
	}
	var n node
	if err := n.read(bare, ""); err != nil {
		return c // impossible: the sections were read before
	}
	n.content.format = c.format
	return &n.content
}

// beforeBody returns the sections before the body.
func (c *content) beforeBody() []byte {
	d := wire.NewDecoder(c.bare)
	for d.More() {
		at := len(c.bare) - len(d.Rest())
		if d.Descriptor() >= wire.DescData {
			return c.bare[:at]
		}
		d.Skip()
	}
	return c.bare
}

func (c *content) Text() bool { return c.text }

func (c *content) Properties() []store.Property {
	d := wire.NewDecoder(c.application)
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
func (c *content) Property(key string) any {
	d := wire.Lookup(c.application, key)
	return d.Scalar()
}

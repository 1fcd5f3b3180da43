package amqp

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// content is an AMQP message as it came, without its header and delivery annotations: [store.Content] of this front-end.
type content struct {
	bare   []byte // sections from the message annotations on
	size   int    // bytes of memory
	format uint32

	// Where sections are in bare: their values, without descriptors; nil if there are none.
	properties, application []byte
	body                    []byte
	bodyKind                uint64 // the descriptor of its section; 0 for none
	text                    bool   // the body is an amqp-value string
	joined                  bool   // the body is that of several sections, and not within bare
}

// node is a message with its content, to be allocated together.
type node struct {
	msg     store.Message
	content content
}

// normalPriority is that of messages that do not say (Messaging, section 3.2.1).
const normalPriority = 4

// arrival is what is asked of a message when it arrives, beside what is in [store.Message].
type arrival struct {
	to      []byte // the address, within the input
	hasTo   bool
	hasKind bool
	kind    store.Kind // as annotated by JMS clients
}

// read fills in n from an encoded message. It keeps b. group is the last message's group, to be used again if it is the same.
func (n *node) read(b []byte, group string) (a arrival, ok bool) {
	n.msg.Priority, n.msg.Content = normalPriority, &n.content
	f := values(b)
	last, start := uint64(0), -1
	for len(f.b) > 0 {
		offset := len(b) - len(f.b)
		section := f.described()
		if f.bad || section < descHeader || section > descFooter || section < last {
			return a, false
		}
		if section == last && section != descData && section != descSequence {
			return a, false
		}
		last = section
		if start < 0 && section > descDeliveryAnnotations {
			start = offset
		}
		value := f.raw()
		if value == nil && section != descValue {
			return a, false
		}
		if f.bad || !n.section(section, value, &a, group) {
			return a, false
		}
	}
	if start < 0 {
		return a, false // there is no body, not even a section
	}
	n.content.bare = b[start:]
	n.content.size += len(b)
	return a, true
}

func (n *node) section(section uint64, value []byte, a *arrival, group string) bool {
	f := values(value)
	c := &n.content
	switch section {
	case descHeader:
		h, ok := f.list()
		n.msg.Durable = h.boolean()
		n.msg.Priority = min(h.ubyte(normalPriority), 9)
		if ttl, has := h.uint(); has {
			n.msg.Expires = time.Now().UnixMilli() + int64(ttl)
		}
		return ok && !h.bad
	case descMessageAnnotations:
		return n.annotations(f.pairs(), a)
	case descProperties:
		c.properties = value
		return n.addressing(f, a, group)
	case descAppProperties:
		c.application = value
		p := f.pairs()
		return !p.bad
	case descData:
		return c.data(f.binary()) && !f.bad
	case descSequence:
		c.bodyKind = descSequence
		if c.body == nil {
			c.body = value
		}
	case descValue:
		c.bodyKind, c.body = descValue, value
		if len(value) == 0 {
			return true
		}
		switch value[0] {
		case codeStr8, codeStr32:
			c.body, c.text = f.str(), true
		case codeBin8, codeBin32:
			c.body = f.binary()
		}
		return !f.bad
	}
	return true
}

// data adds a data section to the body.
func (c *content) data(b []byte) bool {
	if c.bodyKind == descData {
		if !c.joined { // it is part of bare
			c.body, c.joined = c.body[:len(c.body):len(c.body)], true
		}
		c.body = append(c.body, b...)
		c.size = cap(c.body)
		return true
	}
	c.body, c.bodyKind = b, descData
	return true
}

// addressing reads what is needed of the properties (Messaging, section 3.2.4).
func (n *node) addressing(f fields, a *arrival, group string) bool {
	p, ok := f.list()
	p.raw() // message-id
	p.raw() // user-id
	a.to = p.str()
	a.hasTo = a.to != nil
	for range 5 { // subject, reply-to, correlation-id, content-type, content-encoding
		p.raw()
	}
	if expires := p.timestamp(); expires > 0 && n.msg.Expires == 0 {
		n.msg.Expires = expires
	}
	p.raw() // creation-time
	if g := p.str(); string(g) == group {
		n.msg.Group = group
	} else {
		n.msg.Group = string(g)
	}
	return ok && !p.bad
}

// annotations reads what JMS clients say of the destination's kind and of the delivery's time.
func (n *node) annotations(p fields, a *arrival) bool {
	for p.n > 0 && !p.bad {
		key := p.raw()
		name := values(key)
		if len(key) == 0 || key[0] != codeSym8 {
			p.raw()
			continue
		}
		switch string(name.symbol()) {
		case "x-opt-jms-dest":
			if v, ok := p.scalar().(int64); ok {
				a.hasKind, a.kind = true, store.KindQueue
				if v%2 == 1 {
					a.kind = store.KindTopic
				}
			}
		case "x-opt-delivery-time":
			if v, ok := p.scalar().(int64); ok && v > 0 && v < farFuture {
				n.msg.NotBefore = time.UnixMilli(v).UnixNano()
			}
		case "x-opt-delivery-delay":
			switch v := p.scalar().(type) {
			case int64:
				n.delay(v)
			case uint64:
				n.delay(int64(min(v, farFuture))) //nolint:gosec // just bounded
			}
		default:
			p.raw()
		}
	}
	return !p.bad
}

// farFuture is a time in milliseconds whose nanoseconds still fit an int64.
const farFuture = 9_000_000_000_000

func (n *node) delay(millis int64) {
	if millis > 0 && millis < farFuture/2 && n.msg.NotBefore == 0 {
		n.msg.NotBefore = time.Now().Add(time.Duration(millis) * time.Millisecond).UnixNano()
	}
}

// Size implements [store.Content].
func (c *content) Size() int { return c.size }

// Body implements [store.Content]: the data sections, or the text or binary of an amqp-value, or any other body encoded.
func (c *content) Body() []byte { return c.body }

// WithBody implements [store.Content].
func (c *content) WithBody(body []byte) store.Content {
	e := *c
	e.bodyKind, e.text = descData, false
	bare := append([]byte(nil), c.beforeBody()...)
	switch {
	case c.text:
		e.text, e.bodyKind = true, descValue
		bare = appendSized(appendDescriptor(bare, descValue), codeStr8, body)
	default:
		bare = appendBinary(appendDescriptor(bare, descData), body)
	}
	var n node
	if _, ok := n.read(bare, ""); !ok {
		return c // cannot be: the sections were read before
	}
	n.content.format = c.format
	return &n.content
}

// beforeBody returns the sections before the body.
func (c *content) beforeBody() []byte {
	f := values(c.bare)
	for len(f.b) > 0 {
		at := len(c.bare) - len(f.b)
		if f.described() >= descData {
			return c.bare[:at]
		}
		f.raw()
	}
	return c.bare
}

// Header implements [store.Content].
func (c *content) Header() (h store.Header) {
	f := values(c.properties)
	p, _ := f.list()
	h.MessageID = p.id()
	p.raw() // user-id
	p.raw() // to
	h.Subject = string(p.str())
	h.ReplyTo = string(p.str())
	h.CorrelationID = p.id()
	h.ContentType = string(p.symbol())
	p.raw() // content-encoding
	p.raw() // absolute-expiry-time
	h.Created = p.timestamp()
	if h.ContentType == "" && c.text {
		h.ContentType = "text/plain"
	}
	f = values(c.application)
	pairs := f.pairs()
	h.Properties = make([]store.Property, 0, min(pairs.n/2, 64))
	for pairs.n > 0 && !pairs.bad {
		key, _ := pairs.scalar().(string)
		if v := neutral(pairs.scalar()); v != nil {
			h.Properties = append(h.Properties, store.Property{Key: key, Value: v})
		}
	}
	return h
}

// Property returns one application property, nil if there is none, without making all headers for it.
func (c *content) Property(key string) any {
	f := values(c.application)
	pairs := f.pairs()
	for pairs.n > 0 && !pairs.bad {
		name := pairs.raw()
		v := values(name)
		if len(name) > 0 && (name[0] == codeStr8 || name[0] == codeStr32) && string(v.str()) == key {
			return neutral(pairs.scalar())
		}
		pairs.raw()
	}
	return nil
}

// neutral returns a value as [store.Property] has it.
func neutral(v any) any {
	if u, ok := v.(uint64); ok {
		if u > 1<<63-1 {
			return float64(u)
		}
		return int64(u)
	}
	return v
}

// id returns a message-id or correlation-id as text.
func (f *fields) id() string {
	switch v := f.scalar().(type) {
	case string:
		return v
	case uint64:
		return strconv.FormatUint(v, 10)
	case []byte:
		return hex.EncodeToString(v)
	}
	return ""
}

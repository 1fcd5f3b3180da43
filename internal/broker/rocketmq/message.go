package rocketmq

import (
	"strings"
	"sync/atomic"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// Names of properties of ours, for properties of other protocols that RocketMQ lacks.
const (
	propReplyTo     = "REPLY_TO"
	propContentType = "CONTENT_TYPE"
)

// host is an IPv4 address and a port, as stored messages have them.
type host [8]byte

// message is a message of RocketMQ, and the [store.Content] of itself. Once sent nobody changes it, but for place and
// plain.
type message struct {
	store.Message
	topic      string // where it was sent to
	queue      int    // -1: any
	flag       uint32
	sysFlag    uint32
	born       int64 // milliseconds since the Unix epoch
	bornHost   host
	retries    int32 // how often it was given back
	half       int64 // in END_TRANSACTION's notation; 0 if it was not in a transaction
	body       []byte
	properties []byte
	limit      int // of a decompressed body

	place atomic.Int64           // offset in its queue plus one, of the first copy; 0: not stored yet
	plain atomic.Pointer[[]byte] // the body without its compression
}

const normalPriority = 4

// complete makes it the content of its store.Message.
func (m *message) complete() *message {
	m.Content, m.Priority, m.Durable = m, normalPriority, true
	return m
}

// clone returns a copy that was not stored yet.
func (m *message) clone() *message {
	c := &message{
		Message: store.Message{Source: m.Source, Group: m.Group, Expires: m.Expires},
		topic:   m.topic, queue: m.queue, flag: m.flag, sysFlag: m.sysFlag, born: m.born, bornHost: m.bornHost,
		retries: m.retries,
		half:    m.half, body: m.body, properties: m.properties, limit: m.limit,
	}
	return c.complete()
}

// Size implements [store.Content].
func (m *message) Size() int { return len(m.body) + len(m.properties) }

// Body implements [store.Content]: the payload without RocketMQ's compression. One of a kind that we do not know (LZ4,
// ZSTD), or damaged, stays as it is.
func (m *message) Body() []byte {
	if m.sysFlag&wire.SysCompressed == 0 {
		return m.body
	}
	if plain := m.plain.Load(); plain != nil {
		return *plain
	}
	plain := m.body
	if b, err := new(wire.Inflater).Inflate(m.sysFlag, m.body, m.limit); err == nil {
		plain = b
	}
	if len(plain) <= keptRatio*m.Size()+store.MessageSize { // else it would be memory that is not counted
		m.plain.Store(&plain)
	}
	return plain
}

// keptRatio is how many times its compressed size a body may have to be kept without its compression.
const keptRatio = 4

// WithBody implements [store.Content].
func (m *message) WithBody(body []byte) store.Content {
	c := m.clone()
	c.body, c.sysFlag = body, m.sysFlag&^(wire.SysCompressed|wire.SysCompression)
	return c
}

// Header implements [store.Content].
func (m *message) Header() store.Header {
	h := store.Header{Created: m.born}
	for rest := m.properties; len(rest) > 0; {
		var name, value []byte
		switch name, value, rest = wire.CutProperty(rest); string(name) {
		case "": // none
		case wire.PropUniqueKey:
			h.MessageID = string(value)
		case wire.PropTags:
			h.Subject = string(value)
		case wire.PropCorrelationID:
			h.CorrelationID = string(value)
		case propReplyTo:
			h.ReplyTo = string(value)
		case propContentType:
			h.ContentType = string(value)
			h.Text = strings.HasPrefix(h.ContentType, "text/")
		case wire.PropWait, wire.PropPrepared, wire.PropProducerGroup, wire.PropDelayLevel, wire.PropTimerDelayMs,
			wire.PropTimerDelaySec, wire.PropTimerDeliver, wire.PropRetryTopic,
			wire.PropOriginID, wire.PropShardingKey, "CLUSTER", "MIN_OFFSET", "MAX_OFFSET", "REAL_TOPIC", "REAL_QID", "TRACE_ON",
			"MSG_REGION":
			// RocketMQ's own
		default:
			h.Properties = append(h.Properties, store.Property{Key: string(name), Value: string(value)})
		}
	}
	return h
}

// Property implements [selector.Properties]: all are texts.
func (m *message) Property(key string) any {
	if v := wire.Property(m.properties, key); v != nil {
		return string(v)
	}
	return nil
}

// withProperties returns the properties without those names, which are appended anew; pairs are names and values. An
// empty value only takes the property away.
func withProperties(b []byte, pairs ...string) []byte {
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		var name, value []byte
		name, value, b = wire.CutProperty(b)
		kept := len(name) > 0
		for i := 0; i < len(pairs); i += 2 {
			kept = kept && string(name) != pairs[i]
		}
		if kept {
			out = wire.AppendProperty(out, string(name), value)
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = wire.AppendProperty(out, pairs[i], pairs[i+1])
		}
	}
	return out
}

// encodedSize is the number of bytes that append adds.
func (m *message) encodedSize(topic string) int {
	return wire.SizeMessage(len(m.body), len(topic), len(m.properties))
}

// position is where a message is stored.
type position struct {
	topic  string
	queue  int
	offset int64
	log    int64 // the offset in what would be the broker's log
	at     int64 // when, in milliseconds since the Unix epoch
	host   host  // of the broker
}

// append appends the message as it is stored there.
func (m *message) append(b []byte, at *position) []byte {
	return wire.AppendMessage(b, &wire.MessageHead{
		Queue: int32(at.queue), Flag: m.flag, QueueOffset: at.offset, LogOffset: at.log,
		SysFlag: m.sysFlag, //nolint:gosec // few
		Born:    m.born, BornHost: m.bornHost[:], Stored: at.at, StoreHost: at.host[:], Retries: m.retries, Prepared: m.half,
	}, m.body, at.topic, m.properties)
}

// convert makes a message of RocketMQ out of one of another protocol.
func convert(m *store.Message, topic string) *message {
	h := m.Content.Header()
	if h.Text && h.ContentType == "" {
		h.ContentType = "text/plain"
	}
	var b []byte
	add := func(name, value string) {
		if name != "" && len(b)+len(name)+len(value)+2 <= wire.MaxProperties && wire.CarriesProperty(name) &&
			wire.CarriesProperty(value) {
			b = wire.AppendProperty(b, name, value)
		}
	}
	for _, p := range []struct{ name, value string }{
		{wire.PropUniqueKey, h.MessageID},
		{wire.PropTags, h.Subject},
		{wire.PropCorrelationID, h.CorrelationID},
		{propReplyTo, h.ReplyTo},
		{propContentType, h.ContentType},
		{wire.PropShardingKey, m.Group},
	} {
		if p.value != "" {
			add(p.name, p.value)
		}
	}
	for i := range h.Properties {
		add(h.Properties[i].Key, store.Text(h.Properties[i].Value))
	}
	c := &message{
		Message: store.Message{Source: m.Source, Group: m.Group, Expires: m.Expires},
		topic:   topic, queue: -1, born: h.Created, body: m.Content.Body(), properties: b,
	}
	return c.complete()
}

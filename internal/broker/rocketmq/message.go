package rocketmq

import (
	"bytes"
	"sync/atomic"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// propContentType is our property for texts of other protocols.
const propContentType = "CONTENT_TYPE"

// message is a message of RocketMQ, its own [store.Content]. A sent message is immutable,
// except for place.
type message struct {
	store.Message
	topic      string
	queue      int // -1: any
	flag       uint32
	sysFlag    uint32
	born       int64   // milliseconds since the Unix epoch
	bornHost   [8]byte // an IPv4 address and a port, as they are stored
	retries    int32
	half       int64 // offset of the half message; 0 without a transaction
	body       []byte
	properties []byte
	limit      int // of the decompressed body, in bytes

	place atomic.Int64 // queue offset of the first copy plus one; 0: not stored yet
}

const normalPriority = 4

// complete fills in store.Message.
func (m *message) complete() *message {
	m.Content, m.Priority, m.Durable = m, normalPriority, true
	return m
}

// clone returns a copy to be stored.
func (m *message) clone() *message {
	c := &message{
		Message: store.Message{Source: m.Source, Group: m.Group, Expires: m.Expires},
		topic:   m.topic, queue: m.queue, flag: m.flag, sysFlag: m.sysFlag, born: m.born, bornHost: m.bornHost,
		retries: m.retries,
		half:    m.half, body: m.body, properties: m.properties, limit: m.limit,
	}
	return c.complete()
}

func (m *message) Size() int { return len(m.body) + len(m.properties) }

// Body implements [store.Content]: the decompressed body. A body with an unknown compression (LZ4, ZSTD), or a damaged
// one, stays as it is.
func (m *message) Body() []byte {
	if m.sysFlag&wire.SysCompressed == 0 {
		return m.body
	}
	if b, err := new(wire.Inflater).Inflate(m.sysFlag, m.body, m.limit); err == nil {
		return b
	}
	return m.body
}

func (m *message) WithBody(body []byte) store.Content {
	c := m.clone()
	c.body, c.sysFlag = body, m.sysFlag&^(wire.SysCompressed|wire.SysCompression)
	return c
}

func (m *message) Text() bool {
	return bytes.HasPrefix(wire.Property(m.properties, propContentType), []byte("text/"))
}

func (m *message) Properties() (list []store.Property) {
	for rest := m.properties; len(rest) > 0; {
		var name, value []byte
		switch name, value, rest = wire.CutProperty(rest); string(name) {
		case "", wire.PropUniqueKey, wire.PropWait, wire.PropPrepared, wire.PropProducerGroup, wire.PropDelayLevel,
			wire.PropTimerDelayMs, wire.PropRetryTopic, wire.PropOriginID, wire.PropShardingKey, wire.PropCluster,
			wire.PropCorrelationID, wire.PropReplyTo, wire.PropReplyTTL, wire.PropMessageType, wire.PropPushReplyTime,
			"MIN_OFFSET", "MAX_OFFSET", "REAL_TOPIC", "REAL_QID", "TRACE_ON", "MSG_REGION": // none, or RocketMQ's own
		default:
			list = append(list, store.Property{Key: string(name), Value: string(value)})
		}
	}
	return list
}

func (m *message) Property(key string) any {
	if v := wire.Property(m.properties, key); v != nil {
		return string(v)
	}
	return nil
}

// withProperties replaces properties; pairs are names and values. An empty value removes the property.
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

// encodedSize is the number of bytes of append.
func (m *message) encodedSize(topic string) int {
	return wire.SizeMessage(len(m.body), len(topic), len(m.properties))
}

// append appends the encoding of a stored message; h has its place and time.
func (m *message) append(b []byte, topic string, h wire.MessageHead) []byte {
	h.Flag, h.SysFlag, h.Born, h.BornHost = m.flag, m.sysFlag, m.born, m.bornHost[:]
	h.Retries, h.Prepared = m.retries, m.half
	return wire.AppendMessage(b, &h, m.body, topic, m.properties)
}

// convert converts a message of another protocol.
func convert(m *store.Message, topic string) *message {
	var b []byte
	add := func(name, value string) {
		if name != "" && len(b)+len(name)+len(value)+2 <= wire.MaxProperties && wire.CarriesProperty(name) &&
			wire.CarriesProperty(value) {
			b = wire.AppendProperty(b, name, value)
		}
	}
	if m.Content.Text() {
		add(propContentType, "text/plain")
	}
	if m.Group != "" {
		add(wire.PropShardingKey, m.Group)
	}
	appendAddressing(m.Content.Addressing(), topic, add)
	for _, p := range m.Content.Properties() {
		add(p.Key, store.Text(p.Value))
	}
	c := &message{
		Message: store.Message{Source: m.Source, Group: m.Group, Expires: m.Expires},
		topic:   topic, queue: -1, body: m.Content.Body(), properties: b,
	}
	return c.complete()
}

package rocketmq

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"
	"strconv"
	"sync/atomic"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// host is an IPv4 address and a port, as stored messages have them.
type host [8]byte

// message is a message of RocketMQ, and the [store.Content] of itself. Once sent nobody changes it, but for place and plain.
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
	limit      int // of what is decompressed

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
		topic:   m.topic, queue: m.queue, flag: m.flag, sysFlag: m.sysFlag, born: m.born, bornHost: m.bornHost, retries: m.retries,
		half: m.half, body: m.body, properties: m.properties, limit: m.limit,
	}
	return c.complete()
}

// Size implements [store.Content].
func (m *message) Size() int { return len(m.body) + len(m.properties) }

// Body implements [store.Content]: the payload without RocketMQ's compression. One of a kind that we do not know (LZ4,
// ZSTD), or damaged, stays as it is.
func (m *message) Body() []byte {
	if m.sysFlag&sysCompressed == 0 {
		return m.body
	}
	if plain := m.plain.Load(); plain != nil {
		return *plain
	}
	plain := m.body
	if kind := m.sysFlag & sysCompression; kind == 0 || kind == sysZlib {
		if b, err := inflate(m.body, m.limit); err == nil {
			plain = b
		}
	}
	if len(plain) <= keptRatio*m.Size()+store.MessageSize { // else it would be memory that nobody has counted
		m.plain.Store(&plain)
	}
	return plain
}

// keptRatio is how many times its compressed size a body may have to be kept without its compression.
const keptRatio = 4

func inflate(b []byte, limit int) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(plain) > limit {
		err = errFrame
	}
	return plain, err
}

// WithBody implements [store.Content].
func (m *message) WithBody(body []byte) store.Content {
	c := m.clone()
	c.body, c.sysFlag = body, m.sysFlag&^(sysCompressed|sysCompression)
	return c
}

// Header implements [store.Content].
func (m *message) Header() store.Header {
	h := store.Header{Created: m.born}
	eachProperty(m.properties, func(name, value []byte) {
		switch string(name) {
		case propUnique:
			h.MessageID = string(value)
		case propTags:
			h.Subject = string(value)
		case propCorrelation:
			h.CorrelationID = string(value)
		case propReplyTo:
			h.ReplyTo = string(value)
		case propContentType:
			h.ContentType = string(value)
		case propWait, propHalf, propGroup, propDelayLevel, propTimerMillis, propTimerSecs, propTimerAt, propRetryTopic,
			propOrigin, propSharding, "CLUSTER", "MIN_OFFSET", "MAX_OFFSET", "REAL_TOPIC", "REAL_QID", "TRACE_ON", "MSG_REGION":
			// RocketMQ's own
		default:
			h.Properties = append(h.Properties, store.Property{Key: string(name), Value: string(value)})
		}
	})
	return h
}

// Property implements [selector.Properties]: all are texts.
func (m *message) Property(key string) any {
	if v := property(m.properties, key); v != nil {
		return string(v)
	}
	return nil
}

// eachProperty calls f for each property. Without an end it is taken for one as well.
func eachProperty(b []byte, f func(name, value []byte)) {
	for len(b) > 0 {
		p := b
		if i := bytes.IndexByte(b, propertyEnd); i >= 0 {
			p, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if i := bytes.IndexByte(p, nameEnd); i > 0 {
			f(p[:i], p[i+1:])
		}
	}
}

// property finds a property; nil if there is none of that name.
func property(b []byte, name string) (found []byte) {
	for len(b) > 0 {
		p := b
		if i := bytes.IndexByte(b, propertyEnd); i >= 0 {
			p, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if len(p) > len(name) && p[len(name)] == nameEnd && string(p[:len(name)]) == name {
			return p[len(name)+1:]
		}
	}
	return nil
}

// appendProperty appends a property; names and values with the separators in them cannot be had.
func appendProperty(b []byte, name, value string) []byte {
	if len(b) > 0 && b[len(b)-1] != propertyEnd {
		b = append(b, propertyEnd)
	}
	b = append(append(b, name...), nameEnd)
	return append(append(b, value...), propertyEnd)
}

// withProperties returns the properties without those names, which are appended anew; pairs are names and values. An
// empty value only takes the property away.
func withProperties(b []byte, pairs ...string) []byte {
	out := make([]byte, 0, len(b)+64)
	eachProperty(b, func(name, value []byte) {
		for i := 0; i < len(pairs); i += 2 {
			if string(name) == pairs[i] {
				return
			}
		}
		out = append(append(append(append(out, name...), nameEnd), value...), propertyEnd)
	})
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = appendProperty(out, pairs[i], pairs[i+1])
		}
	}
	return out
}

// fixedSize is that of a stored message without body, topic and properties.
const fixedSize = 4 + 4 + 4 + 4 + 4 + 8 + 8 + 4 + 8 + 8 + 8 + 8 + 4 + 8 + 4 + 1 + 2

// encodedSize is what append adds.
func (m *message) encodedSize(topic string) int {
	return fixedSize + len(m.body) + len(topic) + len(m.properties)
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

const magicV1 = 0xdaa320a7

// append encodes a stored message (MessageDecoder.decode).
func (m *message) append(b []byte, at *position) []byte {
	be := binary.BigEndian
	b = be.AppendUint32(b, uint32(m.encodedSize(at.topic)))
	b = be.AppendUint32(b, magicV1)
	b = be.AppendUint32(b, crc32.ChecksumIEEE(m.body)&0x7fffffff)
	b = be.AppendUint32(b, uint32(at.queue))
	b = be.AppendUint32(b, m.flag)
	b = be.AppendUint64(b, uint64(at.offset))
	b = be.AppendUint64(b, uint64(at.log))
	b = be.AppendUint32(b, m.sysFlag&^sysHostsV6)
	b = be.AppendUint64(b, uint64(m.born))
	b = append(b, m.bornHost[:]...)
	b = be.AppendUint64(b, uint64(at.at))
	b = append(b, at.host[:]...)
	b = be.AppendUint32(b, uint32(m.retries))
	b = be.AppendUint64(b, uint64(m.half))
	b = be.AppendUint32(b, uint32(len(m.body)))
	b = append(b, m.body...)
	b = append(append(b, byte(len(at.topic))), at.topic...)
	b = be.AppendUint16(b, uint16(len(m.properties)))
	return append(b, m.properties...)
}

// batched is a message of a batch.
type batched struct {
	flag             uint32
	body, properties []byte
}

// cutBatched takes the first message off a batch (MessageDecoder.encodeMessage):
//
//	int32 size | int32 magic | int32 checksum | int32 flag | int32 length, body | int16 length, properties
func cutBatched(b []byte) (m batched, rest []byte, ok bool) {
	const head = 4 + 4 + 4 + 4
	if len(b) < head {
		return m, nil, false
	}
	size := binary.BigEndian.Uint32(b)
	if uint64(size) > uint64(len(b)) || size < head {
		return m, nil, false
	}
	m.flag = binary.BigEndian.Uint32(b[12:])
	p := b[head:size]
	if m.body, p, ok = cutSized(p); !ok || len(p) < 2 {
		return m, nil, false
	}
	n := int(binary.BigEndian.Uint16(p))
	if n > len(p)-2 || n > maxProperties {
		return m, nil, false
	}
	m.properties = p[2 : 2+n]
	return m, b[size:], true
}

// maxProperties is the largest length of properties: an int16.
const maxProperties = 1<<15 - 1

// convert makes a message of RocketMQ out of one of another protocol.
func convert(m *store.Message, topic string) *message {
	h := m.Content.Header()
	var b []byte
	add := func(name, value string) {
		if name != "" && len(b)+len(name)+len(value)+2 <= maxProperties && !unspeakable(name) && !unspeakable(value) {
			b = appendProperty(b, name, value)
		}
	}
	for _, p := range []struct{ name, value string }{
		{propUnique, h.MessageID},
		{propTags, h.Subject},
		{propCorrelation, h.CorrelationID},
		{propReplyTo, h.ReplyTo},
		{propContentType, h.ContentType},
		{propSharding, m.Group},
	} {
		if p.value != "" {
			add(p.name, p.value)
		}
	}
	for i := range h.Properties {
		add(h.Properties[i].Key, textOf(h.Properties[i].Value))
	}
	c := &message{
		Message: store.Message{Source: m.Source, Group: m.Group, Expires: m.Expires},
		topic:   topic, queue: -1, born: h.Created, body: m.Content.Body(), properties: b,
	}
	return c.complete()
}

// unspeakable tells whether a text has the separators of properties in it.
func unspeakable(s string) bool {
	for i := range len(s) {
		if s[i] == nameEnd || s[i] == propertyEnd {
			return true
		}
	}
	return false
}

// textOf writes a property's value; RocketMQ has only texts.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []byte:
		return string(v)
	default:
		return ""
	}
}

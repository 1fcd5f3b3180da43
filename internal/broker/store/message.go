package store

import (
	"encoding/base64"
	"fmt"
	"time"
)

// Product is the name of the broker in all protocols.
const Product = "perfmq embedded broker"

// Message is a message in the store. It is immutable once sent, including the data that it points to.
type Message struct {
	Content Content
	// Source identifies the producer (a link, a connection): messages of one source are ordered, and the fault reorder
	// swaps two of them.
	Source uint64
	// Priority is 0 (lowest) to 9; 4 is normal.
	Priority uint8
	// Durable is only passed on: the store is in memory.
	Durable bool
	// Group binds the message to the consumer of the group's first message; empty for none.
	Group string
	// Expires is in milliseconds since the Unix epoch; 0 for never.
	Expires int64
	// NotBefore is the earliest delivery, in nanoseconds since the Unix epoch; 0 for at once.
	NotBefore int64
}

// Content is a message in the encoding of its protocol. The front-end of that protocol recognises the type and passes
// the encoding on; the others use this neutral interface.
type Content interface {
	// Size is the approximate memory, in bytes.
	Size() int
	// Body is the payload. It must not be changed.
	Body() []byte
	// Text reports a text body (a TextMessage in JMS): a string in AMQP, a SEND frame without content-length in STOMP,
	// a CONTENT_TYPE of text/... in RocketMQ.
	Text() bool
	// Properties are the application's, with unique keys; each call may decode them again.
	Properties() []Property
	// Property returns one of them, or nil, without decoding the rest.
	Property(key string) any
	// WithBody returns a copy with another body of the same length.
	WithBody(body []byte) Content
}

// Property is one application property.
type Property struct {
	Key   string
	Value any // string, bool, int64, float64, []byte, or uint64 beyond int64
}

// Text formats the value of a property for protocols with text properties only: bytes in base64.
func Text(value any) string {
	switch x := value.(type) {
	case string:
		return x
	case []byte:
		return base64.StdEncoding.EncodeToString(x)
	}
	return fmt.Sprint(value)
}

// Lookup returns the value of a property, or nil.
func Lookup(list []Property, key string) any {
	for i := range list {
		if list[i].Key == key {
			return list[i].Value
		}
	}
	return nil
}

// Expired reports whether the message has expired. now is in milliseconds since the Unix epoch; 0 is replaced by
// the time when it is needed.
func (m *Message) Expired(now *int64) bool {
	if m.Expires == 0 {
		return false
	}
	if *now == 0 {
		*now = time.Now().UnixMilli()
	}
	return m.Expires <= *now
}

const priorities = 10

// size is the accounted size of a message, in bytes.
func (m *Message) size() int64 { return int64(m.Content.Size()) + MessageSize }

// MessageSize is the accounted size of a message without its content, in bytes: an estimate.
const MessageSize = 256

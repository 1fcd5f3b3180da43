package store

import (
	"encoding/base64"
	"fmt"
)

// Product is how the embedded broker names itself to its clients, whatever their protocol.
const Product = "perfmq embedded broker"

// Message is a message in the store. Neither it nor the data it points to changes once it was sent.
type Message struct {
	Content Content
	// Source names the producer (a link, a connection): messages of one source are in order, and the fault that
	// reorders swaps two of one source.
	Source uint64
	// Priority is 0 (lowest) to 9; 4 is normal.
	Priority uint8
	// Durable is only carried along: memory does not survive a restart.
	Durable bool
	// Group binds the message to one consumer, the one that got the group's first message; empty for none.
	Group string
	// Expires is when the message may be dropped, in milliseconds since the Unix epoch; 0 for never.
	Expires int64
	// NotBefore is when it may be delivered at the earliest, in nanoseconds since the Unix epoch; 0 for at once.
	NotBefore int64
}

// Content is a message in the form of the protocol over which it came. A front-end recognises its own by its type and
// can pass it on as it is; all others read it in this neutral form.
type Content interface {
	// Size is how much memory it takes, in bytes, about.
	Size() int
	// Body is the payload. It must not be changed.
	Body() []byte
	// Header returns the rest of the message. It may be made anew with each call.
	Header() Header
	// WithBody returns a copy with another body of the same length.
	WithBody(body []byte) Content
}

// Header is a message without its body, in the terms that all protocols share.
type Header struct {
	// Properties are the application's: keys are unique, values are string, bool, int64, float64 or []byte.
	Properties []Property
	// The rest is empty or zero if the message does not say.
	MessageID, CorrelationID, ReplyTo, ContentType, Subject string
	Created                                                 int64 // milliseconds since the Unix epoch
	// Text says that the body is text, which JMS clients get as a TextMessage: a string in AMQP, a SEND frame without
	// content-length in STOMP, a CONTENT_TYPE of text/... in RocketMQ.
	Text bool
}

// Property is one application property.
type Property struct {
	Key   string
	Value any
}

// Text writes the value of a property for protocols that have only texts: bytes in base64.
func Text(value any) string {
	switch x := value.(type) {
	case string:
		return x
	case []byte:
		return base64.StdEncoding.EncodeToString(x)
	}
	return fmt.Sprint(value)
}

// Lookup returns the value of a property, or nil if there is none.
func (h *Header) Lookup(key string) any {
	for i := range h.Properties {
		if h.Properties[i].Key == key {
			return h.Properties[i].Value
		}
	}
	return nil
}

// normalPriority is that of messages which do not say.
const (
	normalPriority = 4
	priorities     = 10
)

// size is the number of bytes that a message counts against the limits: its content and a guess at the rest.
func (m *Message) size() int64 { return int64(m.Content.Size()) + MessageSize }

// MessageSize is the size of a message without its content, in bytes, as counted against the limits.
const MessageSize = 256

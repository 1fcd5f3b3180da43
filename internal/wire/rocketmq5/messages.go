package rocketmq5

import (
	"errors"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrMessage is for bytes that are not the protobuf message that was expected.
var ErrMessage = errors.New("a message is not as protobuf encodes it")

// MaxRepeated is the largest number of values that are read of a repeated field, such as the queues of a topic. The
// proxy takes 128 properties of a message.
const MaxRepeated = 1 << 14

// message is one of the messages of generated.go.
type message interface {
	Reset()
	Append(b []byte) []byte
	take(f field) error // takes a field; the last one counts, and unknown ones are skipped
}

// field is a field of an encoded message.
type field struct {
	tag   uint64 // its number and wire type, as protobuf encodes them
	n     uint64 // of a varint
	bytes []byte
}

// Read reads an encoded message. What it keeps are parts of b.
func Read(b []byte, m message) error {
	m.Reset()
	return merge(m, b)
}

func merge(m message, b []byte) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return ErrMessage
		}
		f := field{tag: protowire.EncodeTag(number, kind)}
		switch b = b[n:]; kind {
		case protowire.VarintType:
			f.n, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return ErrMessage
		}
		if err := m.take(f); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// appendBytes appends a text or bytes; empty ones are left out.
func appendBytes(b []byte, number protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
}

// appendNumber appends a number; 0 is left out.
func appendNumber(b []byte, number protowire.Number, n int64) []byte {
	if n == 0 {
		return b
	}
	b = protowire.AppendTag(b, number, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(n)) //nolint:gosec // of any sign
}

// appendMessage appends a message; an empty one is left out unless it is to be kept.
func appendMessage(b []byte, number protowire.Number, keep bool, m message) []byte {
	start := len(b)
	b = append(protowire.AppendTag(b, number, protowire.BytesType), 0)
	at := len(b)
	b = m.Append(b)
	n := len(b) - at
	if n == 0 && !keep {
		return b[:start]
	}
	if more := protowire.SizeVarint(uint64(n)) - 1; more > 0 { //nolint:gosec // a size
		b = append(b, make([]byte, more)...)
		copy(b[at+more:], b[at:at+n])
	}
	protowire.AppendVarint(b[:at-1], uint64(n)) //nolint:gosec // a size
	return b
}

// DurationOf returns a duration as protobuf has it.
func DurationOf(d time.Duration) Duration {
	return Duration{int64(d / time.Second), int32(d % time.Second)} //nolint:gosec // below 1e9
}

// TimeOf returns the moment so many microseconds after the Unix epoch.
func TimeOf(micros int64) Timestamp {
	const second = 1_000_000
	return Timestamp{micros / second, int32(micros % second * 1000)} //nolint:gosec // below 1e9
}

// Micros returns the moment in microseconds since the Unix epoch; 0 for one beyond all reason.
func (m *Timestamp) Micros() int64 {
	const most = 1 << 40 // seconds, 35,000 years
	if m.Seconds < 0 || m.Seconds > most || m.Nanos < 0 || m.Nanos >= 1e9 {
		return 0
	}
	return m.Seconds*1_000_000 + int64(m.Nanos)/1000
}

// ResourceOf names a topic or a group.
func ResourceOf(name string) Resource { return Resource{[]byte(name)} }

// AppendSendHead begins a SendMessageRequest with one message, with gRPC's prefix: message is encoded up to its body,
// which has that size and follows it.
func AppendSendHead(b, message []byte, body int) []byte {
	n := len(message) + body
	whole := protowire.SizeTag(1) + protowire.SizeBytes(n)
	b = protowire.AppendTag(AppendPrefix(b, whole), 1, protowire.BytesType)
	return protowire.AppendVarint(b, uint64(n)) //nolint:gosec // a size
}

// AppendBodyHead ends a message whose body follows.
func AppendBodyHead(b []byte, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.BytesType), uint64(size)) //nolint:gosec // a size
}

// AppendAck appends an entry to an AckMessageRequest.
func AppendAck(b []byte, entry *AckMessageEntry) []byte { return appendMessage(b, 3, true, entry) }

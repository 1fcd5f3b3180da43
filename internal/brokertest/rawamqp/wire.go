package rawamqp

import (
	"encoding/binary"
	"fmt"
)

// Descriptors of the performatives and states that are used (Transport, section 2.7; Messaging, sections 3.2, 3.4, 3.5;
// Security, section 5.3.3).
const (
	opOpen        = 0x10
	opBegin       = 0x11
	opAttach      = 0x12
	opFlow        = 0x13
	opTransfer    = 0x14
	opDisposition = 0x15
	opDetach      = 0x16
	opEnd         = 0x17
	opClose       = 0x18

	stateAccepted = 0x24
	typeSource    = 0x28
	typeTarget    = 0x29

	saslMechanisms = 0x40
	saslInit       = 0x41
	saslOutcome    = 0x44

	sectionHeader = 0x70
	sectionData   = 0x75
)

// Types of frames, and the headers that begin the two layers of a connection.
const (
	frameAMQP  = 0
	frameSASL  = 1
	frameHead  = 8
	headerAMQP = "AMQP\x00\x01\x00\x00"
	headerSASL = "AMQP\x03\x01\x00\x00"
)

// Encoded values. Numbers always have their full width, so that a frame can be used again with another one in its place.

func null() []byte { return []byte{0x40} }

func boolean(v bool) []byte {
	if v {
		return []byte{0x41}
	}
	return []byte{0x42}
}

func ubyte(v byte) []byte { return []byte{0x50, v} }

func number(v uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0x70}, v) }

// text returns a string; bytes and symbols differ from it by their code.
func text(v string) []byte   { return sized(0xb1, v) }
func symbol(v string) []byte { return sized(0xb3, v) }
func binaryOf(v string) []byte {
	return sized(0xb0, v)
}

func sized(code byte, v string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{code}, uint32(len(v))), v...) //nolint:gosec // ours, and short
}

// described returns a described list.
func described(descriptor byte, values ...[]byte) []byte {
	b := []byte{0x00, 0x53, descriptor, 0xd0, 0, 0, 0, 0, 0, 0, 0, 0}
	for _, v := range values {
		b = append(b, v...)
	}
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-8))    //nolint:gosec // ours, and short
	binary.BigEndian.PutUint32(b[8:], uint32(len(values))) //nolint:gosec // ours, and short
	return b
}

// frame returns a frame on channel 0.
func frame(kind byte, body ...[]byte) []byte {
	b := []byte{0, 0, 0, 0, 2, kind, 0, 0}
	for _, part := range body {
		b = append(b, part...)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b))) //nolint:gosec // ours, and short
	return b
}

// list reads encoded values one after the other. Those beyond the end are null, as fields that a peer leaves out are;
// after a malformed one all are, and bad is set.
type list struct {
	b   []byte
	bad bool
}

// next takes a value: its code, and what follows the code and the size. Of a described one the code is 0, and the rest
// descriptor and value.
func (l *list) next() (code byte, data []byte) {
	if len(l.b) == 0 {
		return 0x40, nil
	}
	start, end := extent(l.b)
	if end == 0 {
		l.b, l.bad = nil, true
		return 0x40, nil
	}
	code, data = l.b[0], l.b[start:end]
	l.b = l.b[end:]
	return code, data
}

// extent returns where the data of the value at the front of b begins and ends; end is 0 if there is no whole value.
func extent(b []byte) (start, end int) {
	var size int
	switch code := b[0]; {
	case code == 0:
		start, end = 1, 1
		for range 2 { // descriptor and value
			if end >= len(b) {
				return 0, 0
			}
			_, n := extent(b[end:])
			if n == 0 {
				return 0, 0
			}
			end += n
		}
		return start, end
	case code < 0x40:
		return 0, 0
	case code < 0x50:
		return 1, 1
	case code < 0xa0:
		start, size = 1, 1<<(code>>4-5)
	case code>>4&1 == 0: // 0xa, 0xc, 0xe: a size of one byte
		if len(b) < 2 {
			return 0, 0
		}
		start, size = 2, int(b[1])
	default:
		if len(b) < 5 {
			return 0, 0
		}
		start, size = 5, int(binary.BigEndian.Uint32(b[1:]))
	}
	if start+size > len(b) {
		return 0, 0
	}
	return start, start + size
}

// number takes an unsigned number of any width; false if there is none.
func (l *list) number() (v uint64, ok bool) {
	code, data := l.next()
	switch code {
	case 0x40:
		return 0, false
	case 0x43, 0x44, 0x50, 0x52, 0x53, 0x60, 0x70, 0x80:
		for _, x := range data {
			v = v<<8 | uint64(x)
		}
		return v, true
	}
	l.bad = true
	return 0, false
}

func (l *list) boolean() bool {
	code, data := l.next()
	return code == 0x41 || code == 0x56 && data[0] != 0
}

// described opens a described list.
func (l *list) described() (descriptor uint64, in list) {
	code, data := l.next()
	if code != 0 {
		l.bad = true
		return 0, list{}
	}
	inner := list{b: data}
	descriptor, ok := inner.number()
	code, data = inner.next()
	switch {
	case !ok || inner.bad:
	case code == 0x45:
		return descriptor, list{}
	case code == 0xc0 && len(data) > 0:
		return descriptor, list{b: data[1:]} // behind the count
	case code == 0xd0 && len(data) > 3:
		return descriptor, list{b: data[4:]}
	}
	l.bad = true
	return 0, list{}
}

// explain returns the error that a peer gave as a value of a detach, an end or a close.
func (l *list) explain() string {
	code, _ := l.peek()
	if code != 0 {
		return "without a reason"
	}
	_, e := l.described()
	_, condition := e.next()
	_, description := e.next()
	return fmt.Sprintf("%s: %s", condition, description)
}

func (l *list) peek() (byte, []byte) {
	ahead := *l
	return ahead.next()
}

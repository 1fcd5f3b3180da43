package goamqp

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// handshake is what the peer sent while the connection was being opened, as far as it says why that failed. The library has only
// texts for it.
type handshake struct {
	greeting   string // the first bytes, up to eight
	mechanisms bool   // it said how one may log in
	outcome    int    // of the login, as in AMQP 1.0, Security, section 5.3.3.6; -1 if there was none
	broken     error  // why the connection broke; nil if it did not
}

// The protocol headers (AMQP 1.0, Transport, section 2.2; Security, section 5.3.2) and descriptors that a login consists of.
const (
	headerSize     = 8
	headerSASL     = "AMQP\x03\x01\x00\x00"
	frameSASL      = 1
	saslMechanisms = 0x40
	saslOutcome    = 0x44
)

// newHandshake reads the beginning of what the peer sent, of which the end may be missing.
func newHandshake(begin []byte, broken error) handshake {
	h := handshake{greeting: string(begin[:min(len(begin), headerSize)]), outcome: -1, broken: broken}
	if h.greeting != headerSASL {
		return h
	}
	for b := begin[headerSize:]; len(b) >= frameHeader; {
		size, offset := uint64(binary.BigEndian.Uint32(b)), 4*uint64(b[4])
		if b[5] != frameSASL || size > uint64(len(b)) || offset < frameHeader || offset > size {
			return h
		}
		switch body := b[offset:size]; descriptor(body) {
		case saslMechanisms:
			h.mechanisms = true
		case saslOutcome:
			h.outcome = outcomeCode(body)
		}
		b = b[size:]
	}
	return h
}

const frameHeader = 8

// descriptor returns which performative a frame has, -1 if it cannot be told.
func descriptor(body []byte) int {
	const smallUlong, ulong = 0x53, 0x80
	switch {
	case len(body) >= 3 && body[0] == 0 && body[1] == smallUlong:
		return int(body[2])
	case len(body) >= 10 && body[0] == 0 && body[1] == ulong:
		return int(body[9])
	}
	return -1
}

// outcomeCode returns the first field of an outcome, which is a ubyte; -1 if there is none.
func outcomeCode(body []byte) int {
	const list8, list32, ubyte = 0xc0, 0xd0, 0x50
	at := 3
	if body[1] != 0x53 {
		at = 10
	}
	switch {
	case len(body) > at && body[at] == list8:
		at += 3
	case len(body) > at && body[at] == list32:
		at += 9
	}
	if len(body) < at+2 || body[at] != ubyte {
		return -1
	}
	return int(body[at+1])
}

// isOldAMQP recognises the protocol header of AMQP 0-8 to 0-10: byte 5 is not a version 1 with an ID of AMQP 1.0's
// (0, 2 or 3), see AMQP 1.0, Transport, section 2.2.
func (h *handshake) isOldAMQP() bool {
	return len(h.greeting) == headerSize && strings.HasPrefix(h.greeting, "AMQP") && h.greeting[5:] != "\x01\x00\x00"
}

// login tells how the login failed; ok is false if it did not.
func (h *handshake) login() (words, hint string, ok bool) {
	switch {
	case h.outcome == 0, h.outcome < 0 && h.broken != nil:
		return "", "", false
	case h.outcome == 1:
		return "the broker does not accept the login", "check --user and --password", true
	case h.outcome > 1:
		return fmt.Sprintf("the broker could not judge the login, for reasons of its own (code %d)", h.outcome), "look into the broker's log", true
	case h.mechanisms, strings.HasPrefix(h.greeting, "AMQP") && h.greeting != headerSASL:
		return "the broker does not offer this way to log in", "give --user and --password, or choose another -o sasl", true
	}
	return "", "", false
}

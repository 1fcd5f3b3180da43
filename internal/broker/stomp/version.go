package stomp

import (
	"bytes"
	"strconv"
	"strings"
)

// version is a version of the protocol.
type version uint8

// The versions there are.
const (
	v10 version = 10
	v11 version = 11
	v12 version = 12
)

func (v version) String() string {
	return strconv.Itoa(int(v/10)) + "." + strconv.Itoa(int(v%10))
}

const allVersions = "1.0,1.1,1.2"

// negotiate returns the newest version that both sides know. No accept-version means 1.0 (STOMP 1.2, "Protocol
// Negotiation").
func negotiate(accept string) (version, bool) {
	if accept == "" {
		return v10, true
	}
	best := version(0)
	for s := range strings.SplitSeq(accept, ",") {
		for _, v := range []version{v10, v11, v12} {
			if strings.TrimSpace(s) == v.String() {
				best = max(best, v)
			}
		}
	}
	return best, best != 0
}

// undone returns b without its escapes, in b itself if there are none. ok is false for escapes that the version does not know:
// they must end the connection (STOMP 1.2, "Value Encoding").
func (v version) undone(b []byte) (text []byte, ok bool) {
	at := bytes.IndexByte(b, '\\')
	if at < 0 || v == v10 {
		return b, true
	}
	text = append(make([]byte, 0, len(b)), b[:at]...)
	for i := at; i < len(b); i++ {
		if b[i] != '\\' {
			text = append(text, b[i])
			continue
		}
		if i++; i == len(b) {
			return nil, false
		}
		switch {
		case b[i] == 'n':
			text = append(text, '\n')
		case b[i] == 'c':
			text = append(text, ':')
		case b[i] == '\\':
			text = append(text, '\\')
		case b[i] == 'r' && v == v12:
			text = append(text, '\r')
		default:
			return nil, false
		}
	}
	return text, true
}

// appendEscaped appends s as the version writes it in a header. What it cannot write becomes a space: in STOMP 1.0 line
// feeds, colons of names are left for the other side to misread.
func (v version) appendEscaped(b []byte, s string) []byte {
	if v == v10 {
		for i := range len(s) {
			if c := s[i]; c == '\n' || c == '\r' || c == 0 {
				b = append(b, ' ')
			} else {
				b = append(b, c)
			}
		}
		return b
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			b = append(b, '\\', '\\')
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == ':':
			b = append(b, '\\', 'c')
		case c == '\r' && v == v12:
			b = append(b, '\\', 'r')
		case c == '\r', c == 0:
			b = append(b, ' ')
		default:
			b = append(b, c)
		}
	}
	return b
}

// appendHeader appends a header line.
func (v version) appendHeader(b []byte, key, value string) []byte {
	b = append(v.appendEscaped(b, key), ':')
	return append(v.appendEscaped(b, value), '\n')
}

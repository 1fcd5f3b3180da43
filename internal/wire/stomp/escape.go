package stomp

import (
	"bytes"
	"slices"
	"strings"
)

// Version is the version of the protocol that we speak.
const Version = "1.2"

// Accepts reports whether an accept-version header names our version ("Protocol Negotiation").
func Accepts(header string) bool {
	return slices.Contains(strings.Split(strings.ReplaceAll(header, " ", ""), ","), Version)
}

// Carries reports whether a header can hold s: a NUL ends the frame for some brokers wherever it stands.
func Carries(s string) bool { return !strings.ContainsRune(s, 0) }

// AppendEscaped appends s as it is written in a header of any frame but CONNECT and CONNECTED ("Value Encoding"). NUL
// becomes a space.
func AppendEscaped(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; c {
		case 0:
			b = append(b, ' ')
		case '\\':
			b = append(b, '\\', '\\')
		case ':':
			b = append(b, '\\', 'c')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, c)
		}
	}
	return b
}

// appendPlain appends s as CONNECT and CONNECTED write it: without escapes. Line ends and NUL become spaces.
func appendPlain(b []byte, s string) []byte {
	return append(b, strings.NewReplacer("\n", " ", "\r", " ", "\x00", " ").Replace(s)...)
}

// Unescape returns b without its escapes, in b itself if there are none. ok is false for unknown escapes: they must end
// the connection ("Value Encoding").
func Unescape(b []byte) (text []byte, ok bool) {
	at := bytes.IndexByte(b, '\\')
	if at < 0 {
		return b, true
	}
	text = append(make([]byte, 0, len(b)), b[:at]...)
	for i := at; i < len(b); i++ {
		if b[i] != '\\' {
			text = append(text, b[i])
			continue
		}
		i++
		at := -1
		if i < len(b) {
			at = strings.IndexByte(`nc\r`, b[i])
		}
		if at < 0 {
			return nil, false
		}
		text = append(text, "\n:\\\r"[at])
	}
	return text, true
}

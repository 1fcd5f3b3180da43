package stomp

import (
	"bytes"
	"strconv"
	"strings"
)

// Version is a version of the protocol.
type Version uint8

// The versions there are.
const (
	V10 Version = 10
	V11 Version = 11
	V12 Version = 12
)

// AllVersions is the accept-version of a client that speaks all versions.
const AllVersions = "1.0,1.1,1.2"

// String returns the version as the protocol writes it: "1.2".
func (v Version) String() string { return strconv.Itoa(int(v/10)) + "." + strconv.Itoa(int(v%10)) }

// ParseVersion reads the version header of a CONNECTED frame. A STOMP 1.0 server sends none. The result of others is
// zero.
func ParseVersion(s string) (v Version, ok bool) {
	if s == "" {
		return V10, true
	}
	for _, v := range []Version{V10, V11, V12} {
		if s == v.String() {
			return v, true
		}
	}
	return 0, false
}

// Negotiate reads the accept-version header of a CONNECT frame and returns the newest version that both sides know;
// zero if there is none. No accept-version means 1.0 ("Protocol Negotiation").
func Negotiate(accept string) (best Version, ok bool) {
	if accept == "" {
		return V10, true
	}
	for s := range strings.SplitSeq(accept, ",") {
		if s = strings.TrimSpace(s); s != "" {
			v, _ := ParseVersion(s)
			best = max(best, v)
		}
	}
	return best, best != 0
}

// Carries reports whether the value of a header can hold s. STOMP 1.0 has no way to write a line feed, 1.1 none for a
// carriage return ("Value Encoding"), and a NUL ends the frame for some brokers wherever it stands.
func (v Version) Carries(s string) bool {
	switch {
	case strings.ContainsRune(s, 0):
		return false
	case v == V12:
		return true
	case v == V11:
		return !strings.ContainsRune(s, '\r')
	default:
		return !strings.ContainsAny(s, "\r\n")
	}
}

// Keeps reports whether a peer reads s as it is written. That of STOMP 1.0 may leave out blanks around the value of a
// header.
func (v Version) Keeps(s string) bool {
	return v.Carries(s) && (v != V10 || s == strings.TrimSpace(s))
}

// CarriesKey is Carries for the name of a header.
func (v Version) CarriesKey(s string) bool {
	return s != "" && v.Carries(s) && (v != V10 || !strings.ContainsRune(s, ':'))
}

// AppendEscaped appends s as the version writes it in a header of any frame but CONNECT and CONNECTED, which are
// written as by V10 ("Value Encoding"). A character that the version cannot write becomes a space; but a colon in a
// name of STOMP 1.0 is left for the other side to misread.
func (v Version) AppendEscaped(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == 0:
			b = append(b, ' ')
		case c == '\\' && v != V10:
			b = append(b, '\\', '\\')
		case c == ':' && v != V10:
			b = append(b, '\\', 'c')
		case c == '\n' && v != V10:
			b = append(b, '\\', 'n')
		case c == '\r' && v == V12:
			b = append(b, '\\', 'r')
		case c == '\r', c == '\n':
			b = append(b, ' ')
		default:
			b = append(b, c)
		}
	}
	return b
}

// Unescape returns b without its escapes, in b itself if there are none. ok is false for escapes that the version
// does not know: they must end the connection ("Value Encoding").
func (v Version) Unescape(b []byte) (text []byte, ok bool) {
	at := bytes.IndexByte(b, '\\')
	if at < 0 || v == V10 {
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
		case b[i] == 'r' && v == V12:
			text = append(text, '\r')
		default:
			return nil, false
		}
	}
	return text, true
}

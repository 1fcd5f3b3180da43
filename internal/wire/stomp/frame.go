package stomp

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AppendHeader appends one header line.
func AppendHeader(b []byte, key, value string) []byte {
	b = append(AppendEscaped(b, key), ':')
	return append(AppendEscaped(b, value), '\n')
}

// The commands.
const (
	CONNECT     = "CONNECT"
	CONNECTED   = "CONNECTED"
	SEND        = "SEND"
	SUBSCRIBE   = "SUBSCRIBE"
	UNSUBSCRIBE = "UNSUBSCRIBE"
	ACK         = "ACK"
	NACK        = "NACK"
	BEGIN       = "BEGIN"
	COMMIT      = "COMMIT"
	ABORT       = "ABORT"
	DISCONNECT  = "DISCONNECT"
	MESSAGE     = "MESSAGE"
	RECEIPT     = "RECEIPT"
	ERROR       = "ERROR"
)

// Frame is a frame of a kind that is seldom sent. Frames that come once per message are written and read in place.
type Frame struct {
	Command string
	Headers []Header
	Body    []byte
}

// Header is a header without its escapes.
type Header struct{ Key, Value string }

// NewFrame returns a frame with headers that follow each other as key and value.
func NewFrame(command string, headers ...string) *Frame {
	f := &Frame{Command: command}
	for i := 0; i+1 < len(headers); i += 2 {
		f.Add(headers[i], headers[i+1])
	}
	return f
}

// Add adds a header.
func (f *Frame) Add(key, value string) { f.Headers = append(f.Headers, Header{key, value}) }

// Append appends the frame. CONNECT and CONNECTED have no escapes ("Value Encoding"), or a passcode with a colon would
// arrive as another one.
func (f *Frame) Append(b []byte) []byte {
	text := AppendEscaped[string]
	if f.Command == CONNECT || f.Command == CONNECTED {
		text = appendPlain
	}
	b = append(append(b, f.Command...), '\n')
	for _, h := range f.Headers {
		b = append(text(append(text(b, h.Key), ':'), h.Value), '\n')
	}
	b = append(b, '\n')
	return append(append(b, f.Body...), 0)
}

// CutLine takes the first line off b: line is without its end, a line feed with or without a carriage return before
// it, and size with it. It is 0 if there is no line feed.
func CutLine(b []byte) (line []byte, size int) {
	at := bytes.IndexByte(b, '\n')
	if at < 0 {
		return nil, 0
	}
	end := at
	if at > 0 && b[at-1] == '\r' { // bytes.TrimSuffix takes twice the time
		end--
	}
	return b[:end], at + 1
}

// CutHeader splits a header line at its first colon; the escapes are still in both parts. Without a colon, or with
// nothing before it, ok is false.
func CutHeader(line []byte) (key, value []byte, ok bool) {
	key, value, ok = bytes.Cut(line, []byte{':'})
	return key, value, ok && len(key) > 0
}

// MaxDigits bounds the digits of a number: so many always fit.
const MaxDigits = 19

// ParseNumber reads a decimal number of up to MaxDigits digits and nothing else.
func ParseNumber[T string | []byte](text T) (n uint64, ok bool) {
	if len(text) > MaxDigits {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	return n, err == nil
}

// longestBeat bounds the intervals of a heart-beat header.
const longestBeat = 24 * time.Hour

// ParseHeartBeat reads a heart-beat header: the intervals at which its sender can send heart-beats, and wants to get
// them; 0 for never ("Heart-beating"). A longer interval than a day is taken for a day.
func ParseHeartBeat(value string) (can, wants time.Duration, ok bool) {
	first, second, _ := strings.Cut(value, ",")
	x, ok1 := ParseNumber(strings.TrimSpace(first))
	y, ok2 := ParseNumber(strings.TrimSpace(second))
	duration := func(ms uint64) time.Duration {
		return time.Duration(min(ms, uint64(longestBeat/time.Millisecond))) * time.Millisecond //nolint:gosec // bounded
	}
	return duration(x), duration(y), ok1 && ok2
}

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
func AppendEscaped[T string | []byte](b []byte, s T) []byte {
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
	if bytes.IndexByte(b, '\\') < 0 {
		return b, true
	}
	return AppendUnescaped(make([]byte, 0, len(b)), b)
}

// AppendUnescaped appends b without its escapes. It returns nil, false for unknown escapes.
func AppendUnescaped(text, b []byte) (longer []byte, ok bool) {
	for i := 0; i < len(b); i++ {
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

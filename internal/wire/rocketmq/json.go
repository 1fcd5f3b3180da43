package rocketmq

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// parseJSON reads a header in the JSON codec (RemotingSerializable): the default of Java's clients, and the codec of
// brokers' answers to sends. Fields that are no texts are taken as they are written, null as none.
func (f *Frame) parseJSON(h []byte) bool {
	s := scanner{b: h}
	n := 0
	for more := s.begin(); more; more = s.next() {
		key := s.text()
		s.take(':')
		switch string(key) {
		case "code":
			f.Code = int(s.int32())
		case "flag":
			f.Flag = uint32(s.int32())
		case "opaque":
			f.Opaque = uint32(s.int32())
		case "version":
			f.Version = int(s.int32())
		case "remark":
			if !s.null() {
				f.Remark = s.text()
			}
		case "extFields":
			if s.null() {
				continue
			}
			for more := s.begin(); more; more = s.next() {
				if f.field(&s); n == MaxFields {
					return false
				}
				n++
			}
		default:
			s.skip()
		}
	}
	f.Fields = f.scratch
	s.space()
	return !s.failed && s.at == len(s.b)
}

// field takes a field and keeps it in the binary codec.
func (f *Frame) field(s *scanner) {
	start := len(f.scratch)
	b := s.appendText(append(f.scratch, 0, 0))
	n := len(b) - start - 2
	if n > 1<<15-1 {
		s.failed = true
		return
	}
	b[start], b[start+1] = byte(n>>8), byte(n)
	b = append(b, 0, 0, 0, 0)
	value := len(b)
	s.take(':')
	switch {
	case s.ahead('"'):
		b = s.appendText(b)
	case s.failed, s.null():
		return
	default:
		b = append(b, s.word()...)
	}
	CloseField(b, value)
	f.scratch = b
}

// scanner takes JSON off the front of the rest of b, from at on. After a failure there is nothing left: its results
// are empty, and its loops end.
type scanner struct {
	b      []byte
	at     int
	failed bool
}

func (s *scanner) fail() {
	s.at, s.failed = len(s.b), true
}

// ahead reports whether c comes next, after space.
func (s *scanner) ahead(c byte) bool {
	if s.at < len(s.b) && s.b[s.at] <= ' ' {
		s.space()
	}
	return s.at < len(s.b) && s.b[s.at] == c
}

func (s *scanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\t' || s.b[s.at] == '\n' || s.b[s.at] == '\r') {
		s.at++
	}
}

// took takes c if it comes next.
func (s *scanner) took(c byte) bool {
	if s.at < len(s.b) && s.b[s.at] == c { // there is seldom any space
		s.at++
		return true
	}
	if !s.ahead(c) {
		return false
	}
	s.at++
	return true
}

func (s *scanner) take(c byte) {
	if !s.took(c) {
		s.fail()
	}
}

// begin takes the beginning of an object, and reports whether it has members.
func (s *scanner) begin() bool {
	s.take('{')
	return !s.took('}') && !s.failed
}

// next takes a comma, or the end of an object, and reports whether something follows.
func (s *scanner) next() bool {
	if s.took(',') {
		return true
	}
	s.take('}')
	return false
}

func (s *scanner) null() bool {
	null := s.ahead('n') && bytes.HasPrefix(s.b[s.at:], []byte("null"))
	if null {
		s.at += len("null")
	}
	return null
}

// int32 takes a whole number of 32 bits, with a sign or without.
func (s *scanner) int32() int64 {
	n, ok := ParseInt(s.word())
	if !ok || n < -1<<31 || n > 1<<32-1 {
		s.fail()
	}
	return n
}

// word takes a number, true or false.
func (s *scanner) word() []byte {
	s.space()
	start := s.at
	for s.at < len(s.b) && isWord(s.b[s.at]) {
		s.at++
	}
	if s.at == start {
		s.fail()
		return nil
	}
	return s.b[start:s.at]
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// raw takes a text without its quotes, and reports whether it has escapes.
func (s *scanner) raw() (text []byte, escaped bool) {
	s.take('"')
	for start := s.at; s.at < len(s.b); s.at++ {
		switch s.b[s.at] {
		case '\\':
			escaped = true
			s.at++
		case '"':
			s.at++
			return s.b[start : s.at-1 : s.at-1], escaped
		}
	}
	s.fail()
	return nil, false
}

// text takes a text; it allocates one with escapes.
func (s *scanner) text() []byte {
	text, escaped := s.raw()
	if escaped {
		return s.unescape(nil, text)
	}
	return text
}

// appendText takes a text and appends it.
func (s *scanner) appendText(b []byte) []byte {
	text, escaped := s.raw()
	if escaped {
		return s.unescape(b, text)
	}
	return append(b, text...)
}

// unescape appends a text without its escapes.
func (s *scanner) unescape(b, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' {
			b = append(b, c)
			continue
		}
		if r, ok := unicodeEscape(text[i:]); ok {
			i += 5
			if low, ok := unicodeEscape(text[i+1:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			b = utf8.AppendRune(b, r)
			continue
		}
		i++
		at := strings.IndexByte(`"\/bfnrt`, text[i])
		if at < 0 {
			s.fail()
			return b
		}
		b = append(b, "\"\\/\b\f\n\r\t"[at])
	}
	return b
}

// unicodeEscape reads an escape such as \u00e4 at the front of b.
func unicodeEscape(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

// skip takes any value. It counts the brackets, and does not check their content.
func (s *scanner) skip() {
	for depth := 0; !s.failed; {
		switch {
		case s.ahead('"'):
			s.text()
		case s.took('{'), s.took('['):
			depth++
		case depth > 0 && (s.took('}') || s.took(']')):
			depth--
		case depth > 0 && (s.took(',') || s.took(':')):
		default:
			s.word()
		}
		if depth == 0 {
			return
		}
	}
}

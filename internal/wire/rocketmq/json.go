package rocketmq

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// parseJSON reads a header in the JSON codec (RemotingSerializable): that of Java's clients unless told otherwise, and of brokers'
// answers to sends. Fields that are no texts are taken as they are written, null as none.
func (f *Frame) parseJSON(h []byte) bool {
	s := scanner{b: h}
	n := 0
	for more := s.begin('{'); more; more = s.next('}') {
		switch key := s.key(); string(key) {
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
			for more := s.begin('{'); more; more = s.next('}') {
				if f.field(&s); n == MaxFields {
					return false
				}
				n++
			}
		default:
			s.skip(0)
		}
	}
	f.Fields = f.scratch
	s.space()
	return !s.failed && len(s.b) == 0
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
	switch s.take(':'); {
	case s.failed, s.null():
		return
	case s.ahead('"'):
		b = s.appendText(b)
	default:
		b = append(b, s.word()...)
	}
	CloseField(b, value)
	f.scratch = b
}

// scanner takes JSON off the front of b. After a failure it takes nothing more: its results are empty, and its loops end.
type scanner struct {
	b      []byte
	failed bool
}

func (s *scanner) fail() {
	s.b, s.failed = nil, true
}

func (s *scanner) space() {
	for len(s.b) > 0 && (s.b[0] == ' ' || s.b[0] == '\t' || s.b[0] == '\n' || s.b[0] == '\r') {
		s.b = s.b[1:]
	}
}

// ahead reports whether c comes next, after space.
func (s *scanner) ahead(c byte) bool {
	s.space()
	return len(s.b) > 0 && s.b[0] == c
}

// took takes c if it comes next.
func (s *scanner) took(c byte) bool {
	if !s.ahead(c) {
		return false
	}
	s.b = s.b[1:]
	return true
}

func (s *scanner) take(c byte) {
	if !s.took(c) {
		s.fail()
	}
}

// begin takes the beginning of an object or array, and reports whether there is anything in it.
func (s *scanner) begin(c byte) bool {
	s.take(c)
	return !s.took(c+2) && !s.failed // '{' and '}', '[' and ']'
}

// next takes a comma, or the end, and reports whether something follows.
func (s *scanner) next(end byte) bool {
	if s.took(end) {
		return false
	}
	s.take(',')
	return !s.failed
}

// key takes the key of a member and the colon.
func (s *scanner) key() []byte {
	key := s.text()
	s.take(':')
	return key
}

func (s *scanner) null() bool {
	s.space()
	if !bytes.HasPrefix(s.b, []byte("null")) {
		return false
	}
	s.b = s.b[len("null"):]
	return true
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
	n := 0
	for n < len(s.b) && (s.b[n] >= '0' && s.b[n] <= '9' || s.b[n] >= 'a' && s.b[n] <= 'z' || s.b[n] == '-' ||
		s.b[n] == '+' || s.b[n] == '.' || s.b[n] == 'E') {
		n++
	}
	if n == 0 {
		s.fail()
		return nil
	}
	w := s.b[:n]
	s.b = s.b[n:]
	return w
}

// plain takes a text up to its first escape, which comes next if ok is false.
func (s *scanner) plain() (text []byte, ok bool) {
	for i, c := range s.b {
		switch c {
		case '"':
			text, s.b = s.b[:i:i], s.b[i+1:]
			return text, true
		case '\\':
			text, s.b = s.b[:i:i], s.b[i:]
			return text, false
		}
	}
	s.fail()
	return nil, true
}

// text takes a text; it allocates one with escapes.
func (s *scanner) text() []byte {
	s.take('"')
	text, ok := s.plain()
	if !ok {
		text = s.escaped(append([]byte(nil), text...))
	}
	return text
}

// appendText takes a text and appends it.
func (s *scanner) appendText(b []byte) []byte {
	s.take('"')
	text, ok := s.plain()
	b = append(b, text...)
	if !ok {
		b = s.escaped(b)
	}
	return b
}

// escaped appends the rest of a text from its first escape on.
func (s *scanner) escaped(b []byte) []byte {
	for {
		b = s.escape(b)
		text, ok := s.plain()
		if b = append(b, text...); ok {
			return b
		}
	}
}

// escape appends the character that an escape stands for.
func (s *scanner) escape(b []byte) []byte {
	if len(s.b) < 2 {
		s.fail()
		return b
	}
	c := s.b[1]
	s.b = s.b[2:]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		r := s.hex()
		if utf16.IsSurrogate(r) {
			high, rest := r, s.b
			if r = utf8.RuneError; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
				s.b = rest[2:]
				if r = utf16.DecodeRune(high, s.hex()); r == utf8.RuneError && !s.failed {
					s.b = rest // it stands for itself
				}
			}
		}
		return utf8.AppendRune(b, r)
	default:
		s.fail()
	}
	return append(b, c)
}

func (s *scanner) hex() (r rune) {
	if len(s.b) < 4 {
		s.fail()
		return 0
	}
	for _, c := range s.b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			s.fail()
			return 0
		}
		r = r<<4 | rune(c)
	}
	s.b = s.b[4:]
	return r
}

// skip takes any value.
func (s *scanner) skip(depth int) {
	const deepest = 16
	if depth > deepest {
		s.fail()
		return
	}
	switch {
	case s.ahead('{'):
		for more := s.begin('{'); more; more = s.next('}') {
			s.key()
			s.skip(depth + 1)
		}
	case s.ahead('['):
		for more := s.begin('['); more; more = s.next(']') {
			s.skip(depth + 1)
		}
	case s.ahead('"'):
		s.text()
	default:
		s.word()
	}
}

package rocketmq

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// parseJSON reads a header in the JSON codec (RemotingSerializable): the default of Java's clients, and the codec of
// brokers' answers to sends. Fields that are no texts are taken as they are written, null as none.
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

// begin takes the beginning of an object or array, and reports whether there is anything in it.
func (s *scanner) begin(c byte) bool {
	s.take(c)
	return !s.took(c+2) && !s.failed // '{' and '}', '[' and ']'
}

// next takes a comma, or the end, and reports whether something follows.
func (s *scanner) next(end byte) bool {
	if s.took(',') {
		return true
	}
	s.take(end)
	return false
}

// key takes the key of a member and the colon.
func (s *scanner) key() []byte {
	key := s.text()
	s.take(':')
	return key
}

func (s *scanner) null() bool {
	if !s.ahead('n') || !bytes.HasPrefix(s.b[s.at:], []byte("null")) {
		return false
	}
	s.at += len("null")
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

// plain takes a text up to its first escape, which comes next if ok is false.
func (s *scanner) plain() (text []byte, ok bool) {
	rest := s.b[s.at:]
	for i, c := range rest {
		switch c {
		case '"':
			s.at += i + 1
			return rest[:i:i], true
		case '\\':
			s.at += i
			return rest[:i:i], false
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
	if len(s.b)-s.at < 2 {
		s.fail()
		return b
	}
	c := s.b[s.at+1]
	s.at += 2
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
			high, at := r, s.at
			if r = utf8.RuneError; bytes.HasPrefix(s.b[at:], []byte(`\u`)) {
				s.at += 2
				if r = utf16.DecodeRune(high, s.hex()); r == utf8.RuneError && !s.failed {
					s.at = at // it stands for itself
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
	if len(s.b)-s.at < 4 {
		s.fail()
		return 0
	}
	for _, c := range s.b[s.at : s.at+4] {
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
	s.at += 4
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

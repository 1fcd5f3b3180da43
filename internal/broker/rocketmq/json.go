package rocketmq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// maxJSON is the largest body in JSON that is read: what it becomes takes many times its memory.
const maxJSON = 1 << 20

// read reads a body in JSON.
func (r *request) read(v any) error {
	if len(r.body) > maxJSON {
		return fmt.Errorf("it has %d bytes, more than %d", len(r.body), maxJSON)
	}
	return json.Unmarshal(r.body, v)
}

// parseJSON reads a header in the JSON codec, which is that of Java clients unless told otherwise. It allocates nothing
// but what unescaped texts need.
func (r *request) parseJSON(h []byte) error {
	s := scanner{b: h, scratch: r.scratch}
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "code", "flag", "opaque":
			n, ok := parseInt(s.word())
			if !ok || n < -1<<31 || n > 1<<32-1 {
				return false
			}
			switch key[0] {
			case 'c':
				r.code = int(n)
			case 'f':
				r.flag = uint32(n)
			default:
				r.opaque = uint32(n)
			}
			return true
		case "extFields":
			if s.null() {
				return true
			}
			return s.object(func(key []byte) bool {
				value, ok := s.scalar()
				if !ok || len(r.fields) == maxFields {
					return false
				}
				if value != nil {
					r.fields = append(r.fields, field{key, value})
				}
				return true
			})
		default:
			return s.skip(0)
		}
	})
	r.scratch = s.scratch
	if s.space(); !ok || len(s.b) > 0 {
		return errFrame
	}
	return nil
}

// scanner takes JSON off its front.
type scanner struct {
	b       []byte
	scratch []byte
}

func (s *scanner) space() {
	for len(s.b) > 0 && (s.b[0] == ' ' || s.b[0] == '\t' || s.b[0] == '\n' || s.b[0] == '\r') {
		s.b = s.b[1:]
	}
}

func (s *scanner) take(c byte) bool {
	s.space()
	if len(s.b) == 0 || s.b[0] != c {
		return false
	}
	s.b = s.b[1:]
	return true
}

// object calls member after each key; it is to take the value.
func (s *scanner) object(member func(key []byte) bool) bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		key, ok := s.text()
		if !ok || !s.take(':') || !member(key) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *scanner) null() bool {
	s.space()
	if bytes.HasPrefix(s.b, []byte("null")) {
		s.b = s.b[4:]
		return true
	}
	return false
}

// word takes a number, true or false.
func (s *scanner) word() []byte {
	s.space()
	n := 0
	for n < len(s.b) && (s.b[n] >= '0' && s.b[n] <= '9' || s.b[n] >= 'a' && s.b[n] <= 'z' || s.b[n] == '-' ||
		s.b[n] == '+' || s.b[n] == '.' || s.b[n] == 'E') {
		n++
	}
	w := s.b[:n]
	s.b = s.b[n:]
	return w
}

// scalar takes a text or a word; null is nil.
func (s *scanner) scalar() (value []byte, ok bool) {
	if s.null() {
		return nil, true
	}
	if len(s.b) > 0 && s.b[0] == '"' {
		return s.text()
	}
	w := s.word()
	return w, len(w) > 0
}

// text takes a text, which is never nil.
func (s *scanner) text() (text []byte, ok bool) {
	if !s.take('"') {
		return nil, false
	}
	for i, c := range s.b {
		switch c {
		case '"':
			text = s.b[:i:i]
			s.b = s.b[i+1:]
			return text, true
		case '\\':
			return s.escaped()
		}
	}
	return nil, false
}

// escaped is text for one with escapes in it, whose quote was taken.
func (s *scanner) escaped() (text []byte, ok bool) {
	start := len(s.scratch)
	for len(s.b) > 0 {
		c := s.b[0]
		s.b = s.b[1:]
		switch c {
		case '"':
			return s.scratch[start:len(s.scratch):len(s.scratch)], true
		case '\\':
			if !s.escape() {
				return nil, false
			}
		default:
			s.scratch = append(s.scratch, c)
		}
	}
	return nil, false
}

// escape takes what follows a backslash.
func (s *scanner) escape() bool {
	if len(s.b) == 0 {
		return false
	}
	c := s.b[0]
	s.b = s.b[1:]
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
		r, ok := s.hex()
		if !ok {
			return false
		}
		if utf16.IsSurrogate(r) {
			if rest := s.b; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
				s.b = rest[2:]
				low, ok := s.hex()
				if !ok {
					return false
				}
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					s.b = rest // it stands for itself
				}
			} else {
				r = utf8.RuneError
			}
		}
		s.scratch = utf8.AppendRune(s.scratch, r)
		return true
	default:
		return false
	}
	s.scratch = append(s.scratch, c)
	return true
}

func (s *scanner) hex() (r rune, ok bool) {
	if len(s.b) < 4 {
		return 0, false
	}
	for _, c := range s.b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	s.b = s.b[4:]
	return r, true
}

// skip takes any value.
func (s *scanner) skip(depth int) bool {
	const deepest = 16
	if s.space(); len(s.b) == 0 || depth > deepest {
		return false
	}
	switch s.b[0] {
	case '{':
		return s.object(func([]byte) bool { return s.skip(depth + 1) })
	case '[':
		s.b = s.b[1:]
		if s.take(']') {
			return true
		}
		for s.skip(depth + 1) {
			if s.take(']') {
				return true
			}
			if !s.take(',') {
				return false
			}
		}
		return false
	default:
		_, ok := s.scalar()
		return ok
	}
}

func appendQuoted(b []byte, s string) []byte { return append(appendEscaped(append(b, '"'), s), '"') }

func appendEscaped(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}

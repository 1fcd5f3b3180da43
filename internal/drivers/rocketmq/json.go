package rocketmq

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// parseJSON reads a header in the JSON codec. Brokers answer sends in it, so that the usual form is read without
// allocation; what is not of that form is left to the standard library.
func (r *reply) parseJSON(h []byte) error {
	if r.scanJSON(h) {
		return nil
	}
	*r = reply{body: r.body}
	var header struct {
		Code    int               `json:"code"`
		Version int               `json:"version"`
		Flag    uint32            `json:"flag"`
		Opaque  int32             `json:"opaque"`
		Remark  string            `json:"remark"`
		Fields  map[string]string `json:"extFields"`
	}
	if err := json.Unmarshal(h, &header); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	r.version = header.Version
	r.code, r.flag, r.opaque, r.remark = header.Code, header.Flag, uint32(header.Opaque), []byte(header.Remark)
	for key, value := range header.Fields {
		if len(key) > 1<<15 {
			return errFrame
		}
		r.fields = appendField(r.fields, key, value)
	}
	return nil
}

// scanJSON reads a flat object of numbers, texts without escapes and, in extFields, such texts.
func (r *reply) scanJSON(h []byte) bool {
	s := scanner{b: h}
	if !s.take('{') {
		return false
	}
	for !s.take('}') {
		key, ok := s.text()
		if !ok || !s.take(':') {
			return false
		}
		switch string(key) {
		case "code", "flag", "opaque", "version":
			n, ok := s.number()
			if !ok || n < -1<<31 || n > 1<<32-1 {
				return false
			}
			switch key[0] {
			case 'c':
				r.code = int(n)
			case 'f':
				r.flag = uint32(n)
			case 'v':
				r.version = int(n)
			default:
				r.opaque = uint32(n)
			}
		case "remark":
			if r.remark, ok = s.text(); !ok {
				return false
			}
		case "extFields":
			if r.fieldsJSON, ok = s.texts(); !ok {
				return false
			}
		default:
			if !s.skip() {
				return false
			}
		}
		if !s.take(',') && !s.next('}') {
			return false
		}
	}
	return len(s.b) == 0
}

// jsonField finds a field of an object that scanner.texts accepted.
func jsonField(object []byte, key string) []byte {
	s := scanner{b: object[1:]}
	for !s.take('}') {
		name, ok := s.text()
		if !ok || !s.take(':') {
			return nil
		}
		value, ok := s.text()
		if !ok {
			return nil
		}
		if string(name) == key {
			return value
		}
		s.take(',')
	}
	return nil
}

// scanner takes JSON as servers write it, without blanks, off its front.
type scanner struct{ b []byte }

func (s *scanner) next(c byte) bool { return len(s.b) > 0 && s.b[0] == c }

func (s *scanner) take(c byte) bool {
	if !s.next(c) {
		return false
	}
	s.b = s.b[1:]
	return true
}

// text takes a text without escapes.
func (s *scanner) text() ([]byte, bool) {
	if !s.next('"') {
		return nil, false
	}
	for i := 1; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			t := s.b[1:i:i]
			s.b = s.b[i+1:]
			return t, true
		case c == '\\' || c < ' ' || c >= 0x80: // invalid UTF-8 is the standard library's business, too
			return nil, false
		}
	}
	return nil, false
}

func (s *scanner) number() (int64, bool) {
	i := 0
	for i < len(s.b) && (s.b[i] == '-' && i == 0 || s.b[i] >= '0' && s.b[i] <= '9') {
		i++
	}
	digits := bytes.TrimPrefix(s.b[:i], []byte("-"))
	n, ok := parseInt(s.b[:i])
	if !ok || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	s.b = s.b[i:]
	return n, true
}

// texts takes an object of texts.
func (s *scanner) texts() ([]byte, bool) {
	whole := s.b
	if !s.take('{') {
		return nil, false
	}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return nil, false
		}
		if _, ok := s.text(); !ok || !s.take(':') {
			return nil, false
		}
		if _, ok := s.text(); !ok {
			return nil, false
		}
	}
	return whole[:len(whole)-len(s.b)], true
}

// skip takes a number or a text.
func (s *scanner) skip() bool {
	if s.next('"') {
		_, ok := s.text()
		return ok
	}
	_, ok := s.number()
	return ok
}

// unmarshalJSON reads JSON as servers write it: those older than 4.9.4, and some tables still, have numbers as keys
// without quotes.
func unmarshalJSON(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err == nil {
		return nil
	}
	return json.Unmarshal(quoteKeys(b), v)
}

// quoteKeys puts quotes around numbers that are keys.
func quoteKeys(b []byte) []byte {
	out := make([]byte, 0, len(b)+16)
	inText := false
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case inText && c == '\\' && i+1 < len(b):
			out = append(out, c)
			i++
			c = b[i]
		case c == '"':
			inText = !inText
		case !inText && (c == '{' || c == ','):
			digits := i + 1
			for digits < len(b) && bytes.IndexByte([]byte("-0123456789"), b[digits]) >= 0 {
				digits++
			}
			if digits > i+1 && digits < len(b) && b[digits] == ':' {
				out = append(out, c, '"')
				out = append(out, b[i+1:digits]...)
				i, c = digits-1, '"'
			}
		}
		out = append(out, c)
	}
	return out
}

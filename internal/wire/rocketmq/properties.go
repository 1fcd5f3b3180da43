package rocketmq

import (
	"bytes"
	"strconv"
	"unicode/utf16"
)

// Properties travel as name 1 value 2 name 1 value 2 ... (MessageDecoder.NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR).
// Neither can have these characters in it.
const (
	NameEnd     = '\x01'
	PropertyEnd = '\x02'
)

// CutProperty takes the first property off b. The last need not have an end. The name is empty without one, which is to
// be passed over.
func CutProperty(b []byte) (name, value, rest []byte) {
	if i := bytes.IndexByte(b, PropertyEnd); i >= 0 {
		b, rest = b[:i], b[i+1:]
	}
	if i := bytes.IndexByte(b, NameEnd); i > 0 {
		return b[:i], b[i+1:], rest
	}
	return nil, nil, rest
}

// Property returns the value of the first property of that name, or nil.
func Property(b []byte, name string) []byte {
	for len(b) > 0 {
		var key, value []byte
		if key, value, b = CutProperty(b); len(key) > 0 && string(key) == name {
			return value
		}
	}
	return nil
}

// AppendProperty appends a property.
func AppendProperty[T string | []byte](b []byte, name string, value T) []byte {
	b = append(append(b, name...), NameEnd)
	return append(append(b, value...), PropertyEnd)
}

// AppendIntProperty appends a property that is a whole number.
func AppendIntProperty(b []byte, name string, n int64) []byte {
	b = append(append(b, name...), NameEnd)
	return append(strconv.AppendInt(b, n, 10), PropertyEnd)
}

// CarriesProperty reports whether a name or value can be written: whether it has neither separator in it.
func CarriesProperty(text string) bool {
	for i := range len(text) {
		if text[i] == NameEnd || text[i] == PropertyEnd {
			return false
		}
	}
	return true
}

// HashCode is String.hashCode: brokers compare tags by it.
func HashCode(text []byte) (hash int32) {
	var buf [2]uint16
	for _, r := range string(text) {
		for _, unit := range utf16.AppendRune(buf[:0], r) {
			hash = 31*hash + int32(unit)
		}
	}
	return hash
}

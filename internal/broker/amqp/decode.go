package amqp

import (
	"encoding/binary"
	"math"
)

// Format codes (Types, section 1.6).
const (
	codeDescribed  = 0x00
	codeNull       = 0x40
	codeTrue       = 0x41
	codeFalse      = 0x42
	codeUint0      = 0x43
	codeUlong0     = 0x44
	codeList0      = 0x45
	codeUbyte      = 0x50
	codeByte       = 0x51
	codeSmallUint  = 0x52
	codeSmallUlong = 0x53
	codeSmallInt   = 0x54
	codeSmallLong  = 0x55
	codeBool       = 0x56
	codeUshort     = 0x60
	codeShort      = 0x61
	codeUint       = 0x70
	codeInt        = 0x71
	codeFloat      = 0x72
	codeChar       = 0x73
	codeUlong      = 0x80
	codeLong       = 0x81
	codeDouble     = 0x82
	codeTimestamp  = 0x83
	codeUUID       = 0x98
	codeBin8       = 0xa0
	codeStr8       = 0xa1
	codeSym8       = 0xa3
	codeBin32      = 0xb0
	codeStr32      = 0xb1
	codeSym32      = 0xb3
	codeList8      = 0xc0
	codeMap8       = 0xc1
	codeList32     = 0xd0
	codeMap32      = 0xd1
	codeArray8     = 0xe0
	codeArray32    = 0xf0
)

// valueSize returns the length of the value at the front of b, its format code included, or 0 if there is no whole one.
// It looks only at sizes: what is in lists and maps is checked by whoever reads them.
func valueSize(b []byte) int {
	pos := 0
	for pending := 1; pending > 0; pending-- {
		if pos >= len(b) {
			return 0
		}
		code := b[pos]
		pos++
		if code == codeDescribed {
			pending += 2
			continue
		}
		if code < codeNull { // no such subcategory
			return 0
		}
		rest := b[pos:]
		switch code >> 4 {
		case 0x4:
		case 0x5:
			pos++
		case 0x6:
			pos += 2
		case 0x7:
			pos += 4
		case 0x8:
			pos += 8
		case 0x9:
			pos += 16
		case 0xa, 0xc, 0xe:
			if len(rest) < 1 {
				return 0
			}
			pos += 1 + int(rest[0])
		default: // 0xb, 0xd, 0xf
			if len(rest) < 4 {
				return 0
			}
			size := binary.BigEndian.Uint32(rest)
			if uint64(size)+4 > uint64(len(rest)) {
				return 0
			}
			pos += 4 + int(size)
		}
		if pos > len(b) {
			return 0
		}
	}
	return pos
}

// fields reads values one after the other. After a malformed one bad is set and all others are null.
type fields struct {
	b   []byte
	n   int // values left; those beyond are null, as absent fields of a list are
	bad bool
}

// values returns a reader of all that is in b.
func values(b []byte) fields { return fields{b: b, n: math.MaxInt32} }

func (f *fields) fail() {
	f.bad, f.n, f.b = true, 0, nil
}

// code takes the next format code.
func (f *fields) code() byte {
	if f.n == 0 {
		return codeNull
	}
	if len(f.b) == 0 {
		f.fail()
		return codeNull
	}
	f.n--
	c := f.b[0]
	f.b = f.b[1:]
	return c
}

// take returns the next n bytes, n at most 16 unless they are there.
func (f *fields) take(n int) []byte {
	if n > len(f.b) {
		f.fail()
		return make([]byte, min(n, 16))
	}
	b := f.b[:n:n]
	f.b = f.b[n:]
	return b
}

func (f *fields) take8() uint8   { return f.take(1)[0] }
func (f *fields) take32() uint32 { return binary.BigEndian.Uint32(f.take(4)) }
func (f *fields) take64() uint64 { return binary.BigEndian.Uint64(f.take(8)) }

// takeSized returns the bytes after a size of one or four bytes.
func (f *fields) takeSized(wide bool) []byte {
	var size uint32
	if wide {
		size = f.take32()
	} else {
		size = uint32(f.take8())
	}
	if uint64(size) > uint64(len(f.b)) {
		f.fail()
		return nil
	}
	return f.take(int(size))
}

// raw returns the next value as it is encoded; nil for null.
func (f *fields) raw() []byte {
	if f.n == 0 {
		return nil
	}
	n := valueSize(f.b)
	if n == 0 {
		f.fail()
		return nil
	}
	f.n--
	v := f.take(n)
	if v[0] == codeNull {
		return nil
	}
	return v
}

func (f *fields) boolean() bool {
	switch f.code() {
	case codeNull, codeFalse:
		return false
	case codeTrue:
		return true
	case codeBool:
		return f.take8() == 1
	}
	f.fail()
	return false
}

func (f *fields) ubyte(absent uint8) uint8 {
	switch f.code() {
	case codeNull:
		return absent
	case codeUbyte:
		return f.take8()
	}
	f.fail()
	return absent
}

func (f *fields) ushort(absent uint16) uint16 {
	switch f.code() {
	case codeNull:
		return absent
	case codeUshort:
		return binary.BigEndian.Uint16(f.take(2))
	}
	f.fail()
	return absent
}

// uint returns an uint, and whether there is one.
func (f *fields) uint() (v uint32, ok bool) {
	switch f.code() {
	case codeNull:
		return 0, false
	case codeUint0:
		return 0, true
	case codeSmallUint:
		return uint32(f.take8()), !f.bad
	case codeUint:
		return f.take32(), !f.bad
	}
	f.fail()
	return 0, false
}

func (f *fields) uintOr(absent uint32) uint32 {
	if v, ok := f.uint(); ok {
		return v
	}
	return absent
}

// ulong returns an ulong; 0 if absent.
func (f *fields) ulong() uint64 {
	switch f.code() {
	case codeNull, codeUlong0:
		return 0
	case codeSmallUlong:
		return uint64(f.take8())
	case codeUlong:
		return f.take64()
	}
	f.fail()
	return 0
}

// timestamp returns milliseconds since the Unix epoch; 0 if absent.
func (f *fields) timestamp() int64 {
	switch f.code() {
	case codeNull:
		return 0
	case codeTimestamp:
		return int64(f.take64()) //nolint:gosec // two's complement
	}
	f.fail()
	return 0
}

// binary, str and symbol return bytes within the input; nil if absent.
func (f *fields) binary() []byte { return f.bytes(codeBin8) }
func (f *fields) str() []byte    { return f.bytes(codeStr8) }
func (f *fields) symbol() []byte { return f.bytes(codeSym8) }

func (f *fields) bytes(narrow byte) []byte {
	switch c := f.code(); c {
	case codeNull:
		return nil
	case narrow, narrow + 0x10:
		return f.takeSized(c != narrow)
	}
	f.fail()
	return nil
}

// list returns the fields of a list, and whether there is one.
func (f *fields) list() (fields, bool) {
	switch c := f.code(); c {
	case codeNull:
		return fields{bad: f.bad}, false
	case codeList0:
		return fields{}, true
	case codeList8, codeList32:
		return f.compound(c == codeList32), !f.bad
	}
	f.fail()
	return fields{bad: true}, false
}

// pairs returns the keys and values of a map in turn; none if absent.
func (f *fields) pairs() fields {
	switch c := f.code(); c {
	case codeNull:
		return fields{bad: f.bad}
	case codeMap8, codeMap32:
		if p := f.compound(c == codeMap32); p.n%2 == 0 {
			return p
		}
	}
	f.fail()
	return fields{bad: true}
}

// compound reads size and count. A value has at least one byte, so that a count beyond the size is a lie.
func (f *fields) compound(wide bool) fields {
	in := fields{b: f.takeSized(wide)}
	var count uint32
	if wide {
		count = in.take32()
	} else {
		count = uint32(in.take8())
	}
	if in.bad || uint64(count) > uint64(len(in.b)) {
		f.fail()
		return fields{bad: true}
	}
	in.n = int(count)
	return in
}

// symbols returns one symbol or an array of them.
func (f *fields) symbols() (list []string) {
	switch c := f.code(); c {
	case codeNull:
		return nil
	case codeSym8, codeSym32:
		return []string{string(f.takeSized(c == codeSym32))}
	case codeArray8, codeArray32:
		in := f.compound(c == codeArray32)
		element := in.take8()
		if element != codeSym8 && element != codeSym32 {
			break
		}
		for ; in.n > 0; in.n-- {
			list = append(list, string(in.takeSized(element == codeSym32)))
		}
		if !in.bad {
			return list
		}
	}
	f.fail()
	return nil
}

// described takes the descriptor of a described value; the value is what follows. Null and no value at all are 0.
func (f *fields) described() uint64 {
	switch f.code() {
	case codeNull:
		return 0
	case codeDescribed:
	default:
		f.fail()
		return 0
	}
	if len(f.b) > 0 && (f.b[0] == codeSym8 || f.b[0] == codeSym32) {
		f.n += 2
		return descriptorOf(string(f.symbol()))
	}
	f.n += 2
	return f.ulong()
}

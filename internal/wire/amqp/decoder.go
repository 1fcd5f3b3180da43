package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
)

// MaxEntries bounds the symbols of an array that are decoded.
const MaxEntries = 1024

// unknown is the number of values of a Decoder that reads all there are.
const unknown = 1 << 30

// Decoder reads encoded values one after the other (Types, section 1.6). It keeps no copy: bytes that it returns are
// within its input. Its errors stick: after the first one every value is null and [Decoder.Err] tells it. Fields that a
// list leaves out at its end are null too. A Decoder follows sizes and never nests: the inside of a list or map has a
// Decoder of its own.
//
// The zero Decoder has no values. A copy reads on independently. It is not safe for concurrent use.
type Decoder struct {
	b     []byte // values, and any bytes behind them
	pos   int    // of the next value in b
	n     int    // values left
	total int    // values at first; once err is set, the number of the value to blame
	err   error
}

// NewDecoder returns a Decoder of all values in b.
func NewDecoder(b []byte) Decoder { return Decoder{b: b, n: unknown, total: unknown} }

// Err returns the first error; nil if there was none so far.
func (d *Decoder) Err() error { return d.err }

// More reports whether there are values left.
func (d *Decoder) More() bool { return d.n > 0 && (d.pos < len(d.b) || d.total != unknown) }

// Len counts the values left in a list or map (of a map keys and values). It is at most the number of its bytes.
func (d *Decoder) Len() int { return min(d.n, len(d.b)-d.pos) }

// Rest returns the bytes behind the values read.
func (d *Decoder) Rest() []byte { return d.b[d.pos:] }

// Peek returns the format code of the next value without reading it, CodeNull at the end.
func (d *Decoder) Peek() byte {
	if d.n == 0 || d.pos >= len(d.b) {
		return CodeNull
	}
	return d.b[d.pos]
}

func (d *Decoder) fail(err error) {
	if d.err == nil {
		d.err, d.total = err, d.total-d.n
	}
	d.n, d.b, d.pos = 0, nil, 0
}

// join makes the error of a type within, or of a container that was read to its last field, the error of d.
func (d *Decoder) join(inner *Decoder, name string) bool {
	if inner.err == nil {
		return d.err == nil
	}
	d.fail(inner.wrap(name))
	return false
}

// wrap adds the name of a type to the error. It returns nil without an error.
func (d *Decoder) wrap(name string) error {
	if d.err == nil {
		return nil
	}
	field := d.total
	if d.err == ErrMissing { //nolint:errorlint // set by fail alone; it is wrapped here
		field = 0
	}
	return &DecodeError{Type: name, Field: field, Err: d.err}
}

// code takes the next format code.
func (d *Decoder) code() byte {
	if d.n == 0 {
		return CodeNull
	}
	d.n--
	if d.pos >= len(d.b) {
		d.fail(ErrTruncated)
		return CodeNull
	}
	c := d.b[d.pos]
	d.pos++
	return c
}

// fixed takes n bytes, at most 8; they are 0 if there are not as many.
func (d *Decoder) fixed(n int) []byte {
	if len(d.b)-d.pos < n {
		d.fail(ErrTruncated)
		return make([]byte, 8)[:n]
	}
	d.pos += n
	return d.b[d.pos-n : d.pos]
}

func (d *Decoder) take8() uint8   { return d.fixed(1)[0] }
func (d *Decoder) take32() uint32 { return binary.BigEndian.Uint32(d.fixed(4)) }
func (d *Decoder) take64() uint64 { return binary.BigEndian.Uint64(d.fixed(8)) }

// takeBytes takes n bytes; nil if there are not as many.
func (d *Decoder) takeBytes(n uint32) []byte {
	if uint64(n) > uint64(len(d.b)-d.pos) {
		d.fail(ErrTruncated)
		return nil
	}
	end := d.pos + int(n)
	v := d.b[d.pos:end:end]
	d.pos = end
	return v
}

// takeSized takes the bytes behind a size of one or four bytes.
func (d *Decoder) takeSized(wide bool) []byte {
	if wide {
		return d.takeBytes(d.take32())
	}
	return d.takeBytes(uint32(d.take8()))
}

// size returns the number of bytes of the value at the front of b, its format code included. It does not look at the
// elements of lists, maps and arrays. It needs no stack however deep descriptors are nested.
func size(b []byte) (int, error) {
	pos := 0
	for pending := 1; pending > 0; pending-- {
		if pos >= len(b) {
			return 0, ErrTruncated
		}
		code := b[pos]
		pos++
		left := len(b) - pos
		switch code >> 4 {
		case 0x0:
			if code != CodeDescribed {
				return 0, ErrType
			}
			pending += 2
		case 0x4:
		case 0x5, 0x6, 0x7, 0x8, 0x9:
			pos += 1 << (code>>4 - 5)
		case 0xa, 0xc, 0xe:
			if left < 1 {
				return 0, ErrTruncated
			}
			pos += 1 + int(b[pos])
		case 0xb, 0xd, 0xf:
			if left < 4 {
				return 0, ErrTruncated
			}
			n := binary.BigEndian.Uint32(b[pos:])
			if uint64(n)+4 > uint64(left) {
				return 0, ErrTruncated
			}
			pos += 4 + int(n)
		default:
			return 0, ErrType
		}
		if pos > len(b) {
			return 0, ErrTruncated
		}
	}
	return pos, nil
}

// Raw returns the next value as it is encoded, with its format code and descriptor; nil for null.
func (d *Decoder) Raw() []byte {
	if d.n == 0 {
		return nil
	}
	d.n--
	v := d.whole()
	if v == nil || v[0] == CodeNull {
		return nil
	}
	return v
}

// whole takes the next value as it is encoded, null or not.
func (d *Decoder) whole() []byte {
	n, err := size(d.b[d.pos:])
	if err != nil {
		d.fail(err)
		return nil
	}
	return d.takeBytes(uint32(n))
}

// Skip passes over the next value.
func (d *Decoder) Skip() { d.Raw() }

func (d *Decoder) skip(n int) {
	for range n {
		d.Skip()
	}
}

// List returns a Decoder of the fields of a list, and false for null.
func (d *Decoder) List() (fields Decoder, ok bool) {
	ok = d.list(&fields)
	return fields, ok
}

func (d *Decoder) list(in *Decoder) bool {
	switch c := d.code(); c {
	case CodeNull:
		return false
	case CodeList8, CodeList32:
		return d.compound(in, c == CodeList32)
	case CodeList0:
		return true
	}
	d.fail(ErrType)
	return false
}

// Map returns a Decoder of the keys and values of a map in turn, and false for null.
func (d *Decoder) Map() (pairs Decoder, ok bool) {
	switch c := d.code(); c {
	case CodeNull:
		return Decoder{}, false
	case CodeMap8, CodeMap32:
		ok = d.compound(&pairs, c == CodeMap32)
		if pairs.n%2 != 0 {
			d.fail(ErrCount)
			return Decoder{}, false
		}
		return pairs, ok
	}
	d.fail(ErrType)
	return Decoder{}, false
}

// compound makes in a Decoder of the values in a list, map or array. A value takes at least one byte, which bounds the
// count.
func (d *Decoder) compound(in *Decoder, wide bool) bool {
	b, width := d.b[d.pos:], 1 // of size and count each
	if wide {
		width = 4
	}
	if len(b) < 2*width {
		d.fail(ErrTruncated)
		return false
	}
	var size, count uint32
	if wide {
		size, count = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	} else {
		size, count = uint32(b[0]), uint32(b[1])
	}
	end := uint64(width) + uint64(size)
	switch {
	case end > uint64(len(b)), end < uint64(2*width):
		d.fail(ErrTruncated)
		return false
	case uint64(count) > end-uint64(2*width):
		d.fail(ErrCount)
		return false
	}
	in.b, in.pos, in.n, in.total = b[:end:end], 2*width, int(count), int(count)
	d.pos += int(end)
	return true
}

// mapValue returns a map as it is encoded, its inside unread but for the count; nil for null.
func (d *Decoder) mapValue() []byte {
	raw := d.Raw()
	if raw == nil {
		return nil
	}
	inner := NewDecoder(raw)
	if inner.Map(); inner.err != nil {
		d.fail(inner.err)
		return nil
	}
	return raw
}

// Symbols returns one symbol or an array of them; nil for null and for an array without any.
func (d *Decoder) Symbols() (list []string) {
	switch c := d.code(); c {
	case CodeNull:
		return nil
	case CodeSym8, CodeSym32:
		return []string{string(d.takeSized(c == CodeSym32))}
	case CodeArray8, CodeArray32:
		var in Decoder
		if !d.compound(&in, c == CodeArray32) || in.n == 0 {
			return nil
		}
		element := in.take8()
		switch {
		case element != CodeSym8 && element != CodeSym32:
			d.fail(ErrType)
			return nil
		case in.n > MaxEntries:
			d.fail(ErrCount)
			return nil
		}
		for ; in.n > 0 && in.err == nil; in.n-- {
			list = append(list, string(in.takeSized(element == CodeSym32)))
		}
		if in.err == nil {
			return list
		}
		d.fail(ErrTruncated)
		return nil
	}
	d.fail(ErrType)
	return nil
}

// Descriptor takes the descriptor of a described value; the value itself is read next. For null, and behind the last
// value, it is 0.
func (d *Decoder) Descriptor() Descriptor {
	if b := d.b[d.pos:]; d.n > 0 && len(b) > 2 && b[0] == CodeDescribed && b[1] == CodeSmallUlong { // as nearly all are
		d.pos += 3
		return Descriptor(b[2])
	}
	switch d.code() {
	case CodeNull:
		return 0
	case CodeDescribed:
	default:
		d.fail(ErrType)
		return 0
	}
	d.n += 2 // one value as far as the list is concerned, but two to be read
	switch d.Peek() {
	case CodeSym8, CodeSym32:
		if string(d.Bytes()) == SelectorFilterName {
			return DescSelector
		}
		return 0
	case CodeNull:
		d.fail(ErrType)
		return 0
	}
	return Descriptor(d.Ulong(0))
}

// described takes a described list, which must be of that type.
func (d *Decoder) described(want Descriptor) (fields Decoder) {
	got := d.Descriptor()
	ok := d.list(&fields)
	switch {
	case d.err != nil:
	case !ok:
		d.fail(ErrType)
	case got != want:
		d.fail(ErrDescriptor)
	}
	return fields
}

// Opt is a value that may be absent, which is its zero value.
type Opt[T any] struct {
	V  T
	OK bool // V is present
}

// Some returns a present value.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, OK: true} }

// Or returns the value, or another one if it is absent.
func (o Opt[T]) Or(absent T) T {
	if o.OK {
		return o.V
	}
	return absent
}

// Bool returns a boolean; false for null.
func (d *Decoder) Bool() bool {
	switch d.code() {
	case CodeNull, CodeFalse:
		return false
	case CodeTrue:
		return true
	case CodeBool:
		v := d.take8()
		if v > 1 {
			d.fail(ErrValue)
		}
		return v == 1
	}
	d.fail(ErrType)
	return false
}

// Ubyte returns an ubyte, which is absent for null.
func (d *Decoder) Ubyte() Opt[uint8] {
	n, ok := d.fixedNumber(CodeUbyte)
	return Opt[uint8]{V: uint8(n), OK: ok}
}

// fixedNumber returns a number with one encoding, and false for null.
func (d *Decoder) fixedNumber(want byte) (n uint64, ok bool) {
	switch c := d.code(); c {
	case CodeNull:
		return 0, false
	case want:
		for _, b := range d.fixed(1 << (c>>4 - 5)) {
			n = n<<8 | uint64(b)
		}
		return n, d.err == nil
	}
	d.fail(ErrType)
	return 0, false
}

// Ushort returns an ushort, which is absent for null.
func (d *Decoder) Ushort() Opt[uint16] {
	n, ok := d.fixedNumber(CodeUshort)
	return Opt[uint16]{V: uint16(n), OK: ok}
}

// Uint returns an uint, which is absent for null.
func (d *Decoder) Uint() Opt[uint32] {
	switch d.code() {
	case CodeNull:
		return Opt[uint32]{}
	case CodeUint0:
		return Some(uint32(0))
	case CodeSmallUint:
		return Some(uint32(d.take8()))
	case CodeUint:
		return Some(d.take32())
	}
	d.fail(ErrType)
	return Opt[uint32]{}
}

// Ulong returns an ulong; absent for null.
func (d *Decoder) Ulong(absent uint64) uint64 {
	switch d.code() {
	case CodeNull:
		return absent
	case CodeUlong0:
		return 0
	case CodeSmallUlong:
		return uint64(d.take8())
	case CodeUlong:
		return d.take64()
	}
	d.fail(ErrType)
	return absent
}

// Timestamp returns milliseconds since the Unix epoch, absent for null.
func (d *Decoder) Timestamp() Opt[int64] {
	n, ok := d.fixedNumber(CodeTimestamp)
	return Opt[int64]{V: int64(n), OK: ok}
}

// Bytes returns the bytes of a string, symbol or binary, within the input and not nil if it is empty; nil for null.
// That strings are UTF-8 and symbols ASCII is not checked. Peers mix the three up, and nothing is gained by minding.
func (d *Decoder) Bytes() []byte {
	switch c := d.code(); c {
	case CodeNull:
		return nil
	case CodeStr8, CodeSym8, CodeBin8, CodeStr32, CodeSym32, CodeBin32:
		return d.takeSized(c >= CodeBin32)
	}
	d.fail(ErrType)
	return nil
}

// Text returns the bytes of a string, symbol or binary, within the input, and true. Null is nil and true. A value of
// any other type is passed over: nil and false.
func (d *Decoder) Text() ([]byte, bool) {
	switch d.Peek() {
	case CodeNull, CodeStr8, CodeSym8, CodeBin8, CodeStr32, CodeSym32, CodeBin32:
		return d.Bytes(), d.err == nil
	}
	d.Skip()
	return nil, false
}

// Integer returns a byte, short, int, long, ubyte, ushort, uint, or an ulong below 1<<63, and true. A value of any
// other type (null and timestamps among them) is passed over: 0 and false.
func (d *Decoder) Integer() (int64, bool) {
	code := d.Peek()
	switch code {
	case CodeLong: // as nearly all are
		d.code()
		return int64(d.take64()), d.err == nil
	case CodeByte, CodeSmallInt, CodeSmallLong, CodeShort, CodeInt,
		CodeUint0, CodeUlong0, CodeUbyte, CodeSmallUint, CodeSmallUlong, CodeUshort, CodeUint, CodeUlong:
	default:
		d.Skip()
		return 0, false
	}
	raw := d.Raw()
	if d.err != nil {
		return 0, false
	}
	n := uint64(0)
	for _, b := range raw[1:] {
		n = n<<8 | uint64(b)
	}
	switch code {
	case CodeByte, CodeSmallInt, CodeSmallLong, CodeShort, CodeInt:
		unused := 64 - 8*(len(raw)-1)
		return int64(n) << unused >> unused, true
	}
	if n > math.MaxInt64 {
		return 0, false
	}
	return int64(n), true
}

// text is Bytes as a copy; "" for null.
func (d *Decoder) text() string { return string(d.Bytes()) }

func (d *Decoder) optText() Opt[string] {
	if d.Peek() == CodeNull {
		d.Skip()
		return Opt[string]{}
	}
	return Opt[string]{V: d.text(), OK: d.err == nil}
}

// Mandatory fields.

func must[T any](d *Decoder, v Opt[T]) T {
	if !v.OK {
		d.fail(ErrMissing)
	}
	return v.V
}

func (d *Decoder) mustText() string { return must(d, d.optText()) }
func (d *Decoder) mustUint() uint32 { return must(d, d.Uint()) }

func (d *Decoder) mustBinary() []byte {
	v := d.Bytes()
	if v == nil {
		d.fail(ErrMissing)
	}
	return v
}

func (d *Decoder) mustBool() bool {
	if d.Peek() == CodeNull {
		d.fail(ErrMissing)
	}
	return d.Bool()
}

// Scalar returns the next value: a boolean as bool, integers and timestamps as int64, an ulong of more than 1<<63-1 as
// uint64, floats as float64, strings, symbols and UUIDs as string, binary as []byte within the input; nil for null. It
// passes over other values, and returns nil.
func (d *Decoder) Scalar() any {
	switch d.Peek() {
	case CodeTrue, CodeFalse, CodeBool:
		return d.Bool()
	case CodeTimestamp:
		return d.Timestamp().V
	case CodeBin8, CodeBin32:
		return d.Bytes()
	case CodeStr8, CodeStr32, CodeSym8, CodeSym32:
		return d.text()
	case CodeFloat:
		d.code()
		return float64(math.Float32frombits(d.take32()))
	case CodeDouble:
		d.code()
		return math.Float64frombits(d.take64())
	case CodeUUID:
		d.code()
		if v := d.takeBytes(16); v != nil {
			return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
		}
		return nil
	case CodeUlong:
		if n := d.Ulong(0); n > math.MaxInt64 {
			return n
		} else if d.err == nil {
			return int64(n)
		}
		return nil
	}
	if n, ok := d.Integer(); ok {
		return n
	}
	return nil
}

// Lookup returns a Decoder of the value under a key of an encoded map. It has no values if the key is missing, or the
// map is nil or malformed. Keys are strings or symbols. It allocates nothing.
func Lookup(m []byte, key string) Decoder {
	if m == nil {
		return Decoder{}
	}
	d := NewDecoder(m)
	pairs, _ := d.Map()
	for pairs.More() {
		k, _ := pairs.Text()
		if string(k) == key && k != nil {
			pairs.n, pairs.total = min(pairs.n, 1), 1
			return pairs
		}
		pairs.Skip()
	}
	return Decoder{}
}

// LookupText returns the text of a key; "" if there is none.
func LookupText(m []byte, key string) string {
	d := Lookup(m, key)
	text, _ := d.Text()
	return string(text)
}

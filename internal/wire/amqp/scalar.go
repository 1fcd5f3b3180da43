package amqp

import (
	"fmt"
	"math"
)

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

// Binary returns a binary, within the input and not nil if it is empty; nil for null.
func (d *Decoder) Binary() []byte { return d.sized(CodeBin8) }

// Str returns the bytes of a string, within the input and not nil if it is empty; nil for null. That they are UTF-8 is
// not checked.
func (d *Decoder) Str() []byte { return d.sized(CodeStr8) }

// Symbol returns the bytes of a symbol, within the input and not nil if it is empty; nil for null. That they are ASCII
// is not checked.
func (d *Decoder) Symbol() []byte { return d.sized(CodeSym8) }

func (d *Decoder) sized(narrow byte) []byte {
	switch c := d.code(); c {
	case CodeNull:
		return nil
	case narrow, narrow + 0x10:
		return d.takeSized(c != narrow)
	}
	d.fail(ErrType)
	return nil
}

// Text returns the bytes of a string, symbol or binary, within the input, and true. Null is nil and true. A value of
// any other type is passed over: nil and false.
func (d *Decoder) Text() ([]byte, bool) {
	switch c := d.Peek(); c {
	case CodeStr8, CodeSym8, CodeBin8, CodeStr32, CodeSym32, CodeBin32:
		d.code()
		v := d.takeSized(c >= CodeBin32)
		return v, d.err == nil
	case CodeNull:
		d.Skip()
		return nil, d.err == nil
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

// anyText returns the bytes of a string or a symbol; nil for null. Peers mix them up, and nothing is gained by minding.
func (d *Decoder) anyText() []byte {
	switch c := d.code(); c {
	case CodeNull:
		return nil
	case CodeStr8, CodeSym8:
		return d.takeSized(false)
	case CodeStr32, CodeSym32:
		return d.takeSized(true)
	}
	d.fail(ErrType)
	return nil
}

// text is anyText as a copy; "" for null.
func (d *Decoder) text() string { return string(d.anyText()) }

func (d *Decoder) optText() Opt[string] {
	if d.Peek() == CodeNull {
		d.Skip()
		return Opt[string]{}
	}
	return Opt[string]{V: d.text(), OK: d.err == nil}
}

// Mandatory fields.

func (d *Decoder) mustText() string {
	v := d.optText()
	if !v.OK {
		d.fail(ErrMissing)
	}
	return v.V
}

func (d *Decoder) mustUint() uint32 {
	v := d.Uint()
	if !v.OK {
		d.fail(ErrMissing)
	}
	return v.V
}

func (d *Decoder) mustBinary() []byte {
	v := d.Binary()
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
		return d.Binary()
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

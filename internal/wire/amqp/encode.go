package amqp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrEncode is the error for a Go value that stands for no AMQP type.
var ErrEncode = errors.New("no AMQP type stands for this value")

// AppendNull appends null.
func AppendNull(b []byte) []byte { return append(b, CodeNull) }

// AppendBool appends a boolean.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, CodeTrue)
	}
	return append(b, CodeFalse)
}

// AppendUint appends an uint in as few bytes as it takes.
func AppendUint(b []byte, v uint32) []byte {
	switch {
	case v == 0:
		return append(b, CodeUint0)
	case v <= math.MaxUint8:
		return append(b, CodeSmallUint, byte(v))
	}
	return appendWideUint(b, v)
}

// appendOptUint appends an uint, or null if it is absent.
func appendOptUint(b []byte, v Opt[uint32]) []byte {
	if !v.OK {
		return append(b, CodeNull)
	}
	return AppendUint(b, v.V)
}

// appendWideUint appends an uint in full width, so that another one may be put in its place.
func appendWideUint(b []byte, v uint32) []byte {
	return append(b, CodeUint, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// AppendUlong appends an ulong in as few bytes as it takes.
func AppendUlong(b []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(b, CodeUlong0)
	case v <= math.MaxUint8:
		return append(b, CodeSmallUlong, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, CodeUlong), v)
}

// AppendLong appends a long in as few bytes as it takes.
func AppendLong(b []byte, v int64) []byte {
	if v >= math.MinInt8 && v <= math.MaxInt8 {
		return append(b, CodeSmallLong, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, CodeLong), uint64(v))
}

// AppendTimestamp appends a time in milliseconds since the Unix epoch.
func AppendTimestamp(b []byte, ms int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, CodeTimestamp), uint64(ms)) //nolint:gosec // of any sign
}

// AppendStr appends a string; it should be UTF-8 and must be shorter than 4 GiB.
func AppendStr[T ~[]byte | ~string](b []byte, v T) []byte { return appendSized(b, CodeStr8, v) }

// AppendSymbol appends a symbol; it should be ASCII and must be shorter than 4 GiB.
func AppendSymbol[T ~[]byte | ~string](b []byte, v T) []byte { return appendSized(b, CodeSym8, v) }

// AppendBinary appends a binary, which must be shorter than 4 GiB.
func AppendBinary[T ~[]byte | ~string](b []byte, v T) []byte { return appendSized(b, CodeBin8, v) }

func appendSized[T ~[]byte | ~string](b []byte, narrow byte, v T) []byte {
	if len(v) <= math.MaxUint8 {
		return append(append(b, narrow, byte(len(v))), v...)
	}
	return append(binary.BigEndian.AppendUint32(append(b, narrow+0x10), uint32(len(v))), v...)
}

// AppendSymbols appends an array of symbols, or null if there are none.
func AppendSymbols(b []byte, list []string) []byte {
	if len(list) == 0 {
		return AppendNull(b)
	}
	at := len(b)
	b = append(begin(b, CodeArray32), CodeSym32)
	for _, s := range list {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	EndCompound(b, at, len(list))
	return b
}

// AppendDescriptor appends a descriptor; the value that it describes is to follow.
func AppendDescriptor(b []byte, d Descriptor) []byte {
	return AppendUlong(append(b, CodeDescribed), uint64(d))
}

// BeginList appends the head of a list32. Append its values, and call [EndCompound].
func BeginList(b []byte) []byte { return begin(b, CodeList32) }

// BeginMap appends the head of a map32. Append its keys and values in turn, and call [EndCompound].
func BeginMap(b []byte) []byte { return begin(b, CodeMap32) }

// AppendTexts appends a map of strings as keys, or symbols if that is wished, and their strings.
func AppendTexts(b []byte, symbols bool, pairs ...string) []byte {
	at, key := len(b), AppendStr[string]
	if symbols {
		key = AppendSymbol[string]
	}
	b = BeginMap(b)
	for i := 0; i < len(pairs); i += 2 {
		b = AppendStr(key(b, pairs[i]), pairs[i+1])
	}
	EndCompound(b, at, len(pairs))
	return b
}

func begin(b []byte, code byte) []byte { return append(b, code, 0, 0, 0, 0, 0, 0, 0, 0) }

// EndCompound writes the size of the list or map that begins at b[at], and the number of its values (of a map keys and
// values).
func EndCompound(b []byte, at, count int) {
	binary.BigEndian.PutUint32(b[at+1:], uint32(len(b)-at-5))
	binary.BigEndian.PutUint32(b[at+5:], uint32(count))
}

// AppendScalar appends a bool, int64, float64, string, []byte, or nil as null. It fails with [ErrEncode] for any other.
func AppendScalar(b []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return AppendNull(b), nil
	case bool:
		return AppendBool(b, v), nil
	case int64:
		return AppendLong(b, v), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(b, CodeDouble), math.Float64bits(v)), nil
	case string:
		return AppendStr(b, v), nil
	case []byte:
		return AppendBinary(b, v), nil
	}
	return b, fmt.Errorf("%w: %T", ErrEncode, value)
}

// listWriter appends a described list. Nulls at its end are left out, as fields that have their default.
type listWriter struct {
	b     []byte
	at    int // where the list begins
	count int // fields so far
	used  int // fields up to the last one that is not null
	end   int // where that one ends
}

func beginList(b []byte, d Descriptor) listWriter {
	b = AppendDescriptor(b, d)
	at := len(b)
	b = BeginList(b)
	return listWriter{b: b, at: at, end: len(b)}
}

func (w *listWriter) finish() []byte {
	b := w.b[:w.end]
	if w.used == 0 {
		return append(b[:w.at], CodeList0)
	}
	EndCompound(b, w.at, w.used)
	return b
}

// null leaves a field out.
func (w *listWriter) null() { w.field(w.b, false) }

// field counts a field that was appended to w.b; one that is not present is null.
func (w *listWriter) field(b []byte, present bool) {
	w.count++
	if !present {
		w.b = AppendNull(w.b)
		return
	}
	w.b, w.used, w.end = b, w.count, len(b)
}

func (w *listWriter) boolean(v bool) { w.field(AppendBool(w.b, v), true) }
func (w *listWriter) ubyte(v uint8)  { w.field(append(w.b, CodeUbyte, v), true) }
func (w *listWriter) uint(v uint32)  { w.field(AppendUint(w.b, v), true) }

// flag writes a boolean with the default false.
func (w *listWriter) flag(v bool) { w.field(AppendBool(w.b, v), v) }

func (w *listWriter) uintOr(v, absent uint32) { w.field(AppendUint(w.b, v), v != absent) }

func (w *listWriter) opt(v Opt[uint32]) { w.field(AppendUint(w.b, v.V), v.OK) }

func (w *listWriter) optUshort(v Opt[uint16]) {
	w.field(binary.BigEndian.AppendUint16(append(w.b, CodeUshort), v.V), v.OK)
}

func (w *listWriter) optTimestamp(v Opt[int64]) { w.field(AppendTimestamp(w.b, v.V), v.OK) }

// str and symbol leave out an empty text; mustStr and mustSymbol write it.
func (w *listWriter) str(v string)        { w.field(AppendStr(w.b, v), v != "") }
func (w *listWriter) mustStr(v string)    { w.field(AppendStr(w.b, v), true) }
func (w *listWriter) symbol(v string)     { w.field(AppendSymbol(w.b, v), v != "") }
func (w *listWriter) mustSymbol(v string) { w.field(AppendSymbol(w.b, v), true) }

func (w *listWriter) symbols(list []string) { w.field(AppendSymbols(w.b, list), len(list) > 0) }

func (w *listWriter) binary(v []byte) { w.field(AppendBinary(w.b, v), true) }

// sized writes bytes as a string, symbol or binary; null if they are nil.
func (w *listWriter) sized(narrow byte, v []byte) { w.field(appendSized(w.b, narrow, v), v != nil) }

func (w *listWriter) raw(v []byte) { w.field(append(w.b, v...), v != nil) }

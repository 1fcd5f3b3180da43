package amqp

import (
	"encoding/binary"
	"math"
)

func appendNull(b []byte) []byte { return append(b, codeNull) }

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, codeTrue)
	}
	return append(b, codeFalse)
}

func appendUint(b []byte, v uint32) []byte {
	switch {
	case v == 0:
		return append(b, codeUint0)
	case v <= math.MaxUint8:
		return append(b, codeSmallUint, byte(v))
	}
	return binary.BigEndian.AppendUint32(append(b, codeUint), v)
}

func appendUlong(b []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(b, codeUlong0)
	case v <= math.MaxUint8:
		return append(b, codeSmallUlong, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, codeUlong), v)
}

func appendUshort(b []byte, v uint16) []byte {
	return binary.BigEndian.AppendUint16(append(b, codeUshort), v)
}

func appendLong(b []byte, v int64) []byte {
	if v >= math.MinInt8 && v <= math.MaxInt8 {
		return append(b, codeSmallLong, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, codeLong), uint64(v)) //nolint:gosec // two's complement
}

func appendTimestamp(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, codeTimestamp), uint64(v)) //nolint:gosec // two's complement
}

func appendDouble(b []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, codeDouble), math.Float64bits(v))
}

// appendSized appends bytes or text; narrow is the format code for up to 255 of them.
func appendSized[T []byte | string](b []byte, narrow byte, v T) []byte {
	if len(v) <= math.MaxUint8 {
		return append(append(b, narrow, byte(len(v))), v...)
	}
	b = binary.BigEndian.AppendUint32(append(b, narrow+0x10), uint32(len(v))) //nolint:gosec // bounded by a frame
	return append(b, v...)
}

func appendStr(b []byte, v string) []byte    { return appendSized(b, codeStr8, v) }
func appendSymbol(b []byte, v string) []byte { return appendSized(b, codeSym8, v) }
func appendBinary(b, v []byte) []byte        { return appendSized(b, codeBin8, v) }

// appendText appends a string, or null if it is empty.
func appendText(b []byte, v string) []byte {
	if v == "" {
		return appendNull(b)
	}
	return appendStr(b, v)
}

// appendSymbols appends an array, or null if it is empty.
func appendSymbols(b []byte, list []string) []byte {
	if len(list) == 0 {
		return appendNull(b)
	}
	b, at := begin(b, codeArray32)
	b = append(b, codeSym32)
	for _, s := range list {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...) //nolint:gosec // bounded by a frame
	}
	return finish(b, at, len(list))
}

// appendRaw appends an encoded value, or null.
func appendRaw(b, value []byte) []byte {
	if value == nil {
		return appendNull(b)
	}
	return append(b, value...)
}

func appendDescriptor(b []byte, code uint64) []byte {
	return appendUlong(append(b, codeDescribed), code)
}

// begin starts a list32, map32 or array32; finish writes its size and count.
func begin(b []byte, code byte) (out []byte, at int) {
	return append(b, code, 0, 0, 0, 0, 0, 0, 0, 0), len(b) + 1
}

func finish(b []byte, at, count int) []byte {
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4)) //nolint:gosec // bounded by a frame
	binary.BigEndian.PutUint32(b[at+4:], uint32(count))     //nolint:gosec // ours
	return b
}

// beginDescribed starts a described list.
func beginDescribed(b []byte, descriptor uint64) (out []byte, at int) {
	return begin(appendDescriptor(b, descriptor), codeList32)
}

// beginShort starts a described list of less than 255 bytes; finishShort writes its size and count.
func beginShort(b []byte, descriptor byte) (out []byte, at int) {
	return append(b, codeDescribed, codeSmallUlong, descriptor, codeList8, 0, 0), len(b) + 4
}

func finishShort(b []byte, at int, count byte) []byte {
	b[at], b[at+1] = byte(len(b)-at-1), count
	return b
}

// Frame types (Transport, section 2.3.1; Security, section 5.3.1).
const (
	frameHeader = 8
	frameAMQP   = 0
	frameSASL   = 1
)

// beginFrame starts a frame; finishFrame writes its size.
func beginFrame(b []byte, kind byte, channel uint16) (out []byte, at int) {
	return append(b, 0, 0, 0, 0, 2, kind, byte(channel>>8), byte(channel)), len(b)
}

func finishFrame(b []byte, at int) []byte {
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at)) //nolint:gosec // bounded by a frame
	return b
}

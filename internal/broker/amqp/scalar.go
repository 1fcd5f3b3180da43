package amqp

import (
	"encoding/binary"
	"encoding/hex"
	"math"
)

// scalar returns the next value as string, bool, int64, uint64, float64 or []byte, within the input where it is bytes; nil
// for null and for what is none of these.
func (f *fields) scalar() any {
	if f.n == 0 {
		return nil
	}
	if len(f.b) == 0 {
		f.fail()
		return nil
	}
	switch code := f.b[0]; code {
	case codeTrue, codeFalse, codeBool:
		return f.boolean()
	case codeBin8, codeBin32:
		return f.binary()
	case codeStr8, codeStr32:
		return string(f.str())
	case codeSym8, codeSym32:
		return string(f.symbol())
	case codeFloat, codeDouble:
		f.code()
		if code == codeDouble {
			return math.Float64frombits(f.take64())
		}
		return float64(math.Float32frombits(f.take32()))
	case codeUUID:
		f.code()
		return uuidText(f.take(16))
	case codeChar:
		f.code()
		return string(rune(f.take32())) //nolint:gosec // what is none becomes U+FFFD
	}
	return f.integer()
}

func (f *fields) integer() any {
	switch f.b[0] {
	case codeUlong, codeUlong0, codeSmallUlong:
		return f.ulong()
	case codeUint, codeUint0, codeSmallUint:
		return int64(f.uintOr(0))
	case codeUbyte:
		return int64(f.ubyte(0))
	case codeUshort:
		return int64(f.ushort(0))
	case codeByte, codeSmallInt, codeSmallLong:
		f.code()
		return int64(int8(f.take8())) //nolint:gosec // two's complement
	case codeShort:
		f.code()
		return int64(int16(binary.BigEndian.Uint16(f.take(2)))) //nolint:gosec // two's complement
	case codeInt:
		f.code()
		return int64(int32(f.take32())) //nolint:gosec // two's complement
	case codeLong, codeTimestamp:
		f.code()
		return int64(f.take64()) //nolint:gosec // two's complement
	}
	f.raw()
	return nil
}

func uuidText(u []byte) string {
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

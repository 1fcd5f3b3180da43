package rocketmq

import (
	"encoding/binary"
	"strconv"
)

// BeginFrame appends the head of a frame in the binary codec. Fields follow, then [EndFrame], then the body.
func BeginFrame(b []byte, code int, flag, opaque uint32, remark string) []byte {
	b = append(b, 0, 0, 0, 0, Binary, 0, 0, 0, byte(code>>8), byte(code), languageGo, Version>>8, Version&0xff)
	b = binary.BigEndian.AppendUint32(b, opaque)
	b = binary.BigEndian.AppendUint32(b, flag)
	b = binary.BigEndian.AppendUint32(b, uint32(len(remark)))
	b = append(b, remark...)
	return append(b, 0, 0, 0, 0) // the length of the fields
}

// EndFrame writes the lengths into a frame; b is all of it but the body, of body bytes.
func EndFrame(b []byte, body int) {
	fields := FieldsAt + int(binary.BigEndian.Uint32(b[remarkAt:]))
	binary.BigEndian.PutUint32(b, uint32(len(b)-LengthSize+body))
	binary.BigEndian.PutUint32(b[LengthSize:], uint32(Binary)<<24|uint32(len(b)-LengthSize-MinFrame))
	binary.BigEndian.PutUint32(b[fields-4:], uint32(len(b)-fields))
}

// AppendField appends a field. Brokers sign one without a value as "null", so better leave that out.
func AppendField[T string | []byte](b []byte, key string, value T) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(key)))
	b = append(b, key...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

// AppendInt appends a field that is a whole number.
func AppendInt(b []byte, key string, n int64) []byte {
	b, at := OpenField(b, key)
	b = strconv.AppendInt(b, n, 10)
	CloseField(b, at)
	return b
}

// OpenField appends a field's key. The caller appends the value and calls CloseField with value.
func OpenField(b []byte, key string) (frame []byte, value int) {
	b = AppendField(b, key, "")
	return b, len(b)
}

// CloseField writes the length of a value that began there and ends with b.
func CloseField(b []byte, value int) {
	binary.BigEndian.PutUint32(b[value-4:], uint32(len(b)-value))
}

// Writer appends frames in the binary codec to B: Begin, fields, End; the body follows. Every client reads it, whatever
// the codec of its requests.
type Writer struct {
	B     []byte
	start int // of the frame
}

// Begin begins a frame.
func (w *Writer) Begin(code int, flag, opaque uint32, remark string) {
	w.start = len(w.B)
	w.B = BeginFrame(w.B, code, flag, opaque, remark)
}

// Text appends a field.
func (w *Writer) Text(key, value string) { w.B = AppendField(w.B, key, value) }

// Int appends a field that is a whole number.
func (w *Writer) Int(key string, n int64) { w.B = AppendInt(w.B, key, n) }

// End ends the header. The caller appends the body, of that many bytes.
func (w *Writer) End(body int) { EndFrame(w.B[w.start:], body) }

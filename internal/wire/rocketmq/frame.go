package rocketmq

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the protocol's choice
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
)

// A frame (RemotingCommand.encode) is
//
//	int32 length of the rest | byte codec | int24 length of the header | header | body
//
// and a header in the binary codec (RocketMQSerializable.rocketMQProtocolEncode) is
//
//	int16 code | byte language | int16 version | int32 opaque | int32 flag | int32 length, remark | int32 length, fields
//
// where each field is int16 length, key, int32 length, value.

const (
	// LengthSize is the size of the length field, in bytes. The length does not count it.
	LengthSize = 4
	// MinFrame is the least length that a frame may tell.
	MinFrame = 4
	// MaxFrame is the largest length that RocketMQ takes unless told otherwise (com.rocketmq.remoting.frameMaxLength).
	MaxFrame = 16 << 20
	// MaxHeader is the largest header that is read, in bytes. The longest text in one is the properties: 32 KiB.
	MaxHeader = 1 << 20
	// MaxFields is the largest number of fields of a header that is read.
	MaxFields = 256

	// OpaqueAt is where a frame in the binary codec has the number of the request, an int32.
	OpaqueAt = 13
	// FieldsAt is where its fields begin if it has no remark.
	FieldsAt = 29

	remarkAt = 21
	headSize = 13 // of a binary header, before the remark
)

// ErrFrame is for bytes that are not a frame.
var ErrFrame = errors.New("a frame is not of RocketMQ's remoting protocol")

// Frame is a request or an answer. Its slices are parts of the bytes it was parsed from, or memory of its own that the
// next Parse uses again.
type Frame struct {
	Code    int // of a request or an answer
	Version int // of the sender (MQVersion.Version.ordinal); 0 if it did not say
	Opaque  uint32
	Flag    uint32
	Remark  []byte
	Fields  []byte // in the binary codec, for [CutField]
	Body    []byte

	scratch []byte // fields that came in JSON
}

// keptScratch is the largest memory for fields that a Frame keeps, in bytes.
const keptScratch = 64 << 10

// Parse reads a frame without its first LengthSize bytes. An error wraps ErrFrame.
func (f *Frame) Parse(b []byte) error {
	scratch := f.scratch[:0]
	if cap(scratch) > keptScratch {
		scratch = nil
	}
	*f = Frame{scratch: scratch}
	if len(b) < MinFrame {
		return ErrFrame
	}
	size := int(binary.BigEndian.Uint32(b) & 0xffffff)
	if size > len(b)-MinFrame {
		return ErrFrame
	}
	if size > MaxHeader {
		return fmt.Errorf("%w: a header of %d bytes; at most %d are accepted", ErrFrame, size, MaxHeader)
	}
	header := b[MinFrame : MinFrame+size]
	f.Body = b[MinFrame+size:]
	ok := false
	switch b[0] {
	case Binary:
		ok = f.parseBinary(header)
	case JSON:
		ok = f.parseJSON(header)
	}
	if !ok {
		return ErrFrame
	}
	return nil
}

func (f *Frame) parseBinary(h []byte) bool {
	if len(h) < headSize {
		return false
	}
	f.Code = int(int16(binary.BigEndian.Uint16(h)))
	f.Version = int(binary.BigEndian.Uint16(h[3:]))
	f.Opaque = binary.BigEndian.Uint32(h[5:])
	f.Flag = binary.BigEndian.Uint32(h[9:])
	var ok bool
	if f.Remark, h, ok = cutSized(h[headSize:]); !ok {
		return false
	}
	f.Fields, _, ok = cutSized(h)
	return ok && checkFields(f.Fields)
}

// checkFields reports whether b is MaxFields fields at most and nothing else.
func checkFields(b []byte) bool {
	at := 0
	for range MaxFields {
		if at == len(b) {
			return true
		}
		if len(b)-at < 2 {
			return false
		}
		at += 2 + int(binary.BigEndian.Uint16(b[at:]))
		if len(b)-at < 4 {
			return false
		}
		n := binary.BigEndian.Uint32(b[at:])
		if at += 4; uint64(n) > uint64(len(b)-at) { //nolint:gosec // not below 0
			return false
		}
		at += int(n)
	}
	return at == len(b)
}

// cutSized takes an int32 length and that many bytes off b.
func cutSized(b []byte) (value, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, false
	}
	return b[4 : 4+n], b[4+n:], true
}

// cutShort takes an int16 length and that many bytes off b.
func cutShort(b []byte) (value, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if n > len(b)-2 {
		return nil, nil, false
	}
	return b[2 : 2+n], b[2+n:], true
}

// CutField takes the first field off the Fields of a Frame that was parsed, and panics for other bytes.
func CutField(b []byte) (key, value, rest []byte) {
	n := 2 + int(binary.BigEndian.Uint16(b))
	end := n + 4 + int(binary.BigEndian.Uint32(b[n:]))
	return b[2:n], b[n+4 : end], b[end:]
}

// Get returns a field of the header, the first of several with one key, or nil.
func (f *Frame) Get(key string) []byte {
	for rest := f.Fields; len(rest) > 0; { // they have been checked
		var name, value []byte
		if name, value, rest = CutField(rest); string(name) == key {
			return value
		}
	}
	return nil
}

// Number returns a field that is a whole number; ok is false without one.
func (f *Frame) Number(key string) (n int64, ok bool) { return ParseInt(f.Get(key)) }

// NumberOr returns a field that is a whole number, or otherwise the given one.
func (f *Frame) NumberOr(key string, otherwise int64) int64 {
	if n, ok := f.Number(key); ok {
		return n
	}
	return otherwise
}

// Clone returns a copy that does not change with the bytes that the frame was parsed from.
func (f *Frame) Clone() Frame {
	c := *f
	c.Remark, c.Fields, c.Body, c.scratch = slices.Clone(f.Remark), slices.Clone(f.Fields), slices.Clone(f.Body), nil
	return c
}

// ParseInt reads a decimal number of at most 20 characters.
func ParseInt(b []byte) (n int64, ok bool) {
	if len(b) > 20 || len(b) > 0 && b[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

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

// Names of the fields of a signed request (SessionCredentials.ACCESS_KEY, SIGNATURE).
const (
	FieldAccessKey = "AccessKey"
	FieldSignature = "Signature"
)

// Signer signs requests with an access key and its secret (AclClientRPCHook.doBeforeRequest,
// AclUtils.combineRequestContent): the signature is the base64 of HMAC-SHA1 over the values of all other fields, in
// the order of their keys, and the body. It is for one goroutine at a time. A nil Signer signs nothing.
type Signer struct {
	accessKey string
	mac       hash.Hash
	order     [][2][]byte // keys and values
	sum       [sha1.Size]byte
	text      [28]byte // base64 of 20 bytes
}

// NewSigner returns a Signer, nil if there is neither a key nor a secret.
func NewSigner(accessKey, secret string) *Signer {
	if accessKey == "" && secret == "" {
		return nil
	}
	return &Signer{accessKey: accessKey, mac: hmac.New(sha1.New, []byte(secret))}
}

// Begin appends the access key to a frame without fields: its name sorts before all others in use.
func (s *Signer) Begin(b []byte) []byte {
	if s == nil {
		return b
	}
	return AppendField(b, FieldAccessKey, s.accessKey)
}

// Sign appends the signature to a frame in the binary codec; b is all of it but the body. It must have no remark, and
// its fields must be in the order of their keys.
func (s *Signer) Sign(b, body []byte) []byte {
	if s == nil {
		return b
	}
	s.mac.Reset()
	for f := b[FieldsAt:]; len(f) > 0; {
		var value []byte
		_, value, f = CutField(f)
		s.mac.Write(value)
	}
	return AppendField(b, FieldSignature, s.end(body))
}

// Verify reports whether a request has the right signature; it is false for a nil Signer.
func (s *Signer) Verify(f *Frame) bool {
	if s == nil {
		return false
	}
	s.order = s.order[:0]
	for b := f.Fields; len(b) > 0; {
		var key, value []byte
		key, value, b = CutField(b)
		if string(key) != FieldSignature {
			s.order = append(s.order, [2][]byte{key, value})
		}
	}
	slices.SortFunc(s.order, func(a, b [2][]byte) int { return bytes.Compare(a[0], b[0]) })
	s.mac.Reset()
	for _, f := range s.order {
		s.mac.Write(f[1])
	}
	clear(s.order)
	return hmac.Equal(s.end(f.Body), f.Get(FieldSignature))
}

// end returns the signature, valid until the next.
func (s *Signer) end(body []byte) []byte {
	s.mac.Write(body)
	base64.StdEncoding.Encode(s.text[:], s.mac.Sum(s.sum[:0]))
	return s.text[:]
}

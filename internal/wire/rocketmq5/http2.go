package rocketmq5

import (
	"encoding/binary"
	"errors"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
)

// Values of settings until a peer sends others, and limits (RFC 9113, section 6.5.2).
const (
	HeadSize      = 9
	DefaultWindow = 1<<16 - 1
	MaxWindow     = 1<<31 - 1
	LeastMaxFrame = 1 << 14   // the frames that we accept have no more bytes: we do not ask for more
	MostMaxFrame  = 1<<24 - 1 // that a peer may accept
	HeaderTable   = 4096
	PingSize      = 8
	// MaxHeaders is the largest size of a block of headers in bytes: it fits into a frame.
	MaxHeaders = LeastMaxFrame
)

// Errors of a peer.
var (
	ErrFrame   = errors.New("a frame of HTTP/2 is malformed")
	ErrHeaders = errors.New("a block of headers is malformed or too large")
)

// ParseHead reads the head of a frame from HeadSize bytes.
func ParseHead(b []byte) http2.FrameHeader {
	return http2.FrameHeader{
		Type: http2.FrameType(b[3]), Flags: http2.Flags(b[4]), Length: binary.BigEndian.Uint32(b) >> 8,
		StreamID: binary.BigEndian.Uint32(b[5:]) &^ (1 << 31),
	}
}

// AppendHead appends the head of a frame.
func AppendHead(b []byte, length int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

// Payload returns the payload of a frame DATA or HEADERS without padding. Headers must be whole, as peers are told that
// they must fit into a frame, and without a priority, which only clients have.
func Payload(h http2.FrameHeader, b []byte) ([]byte, error) {
	const whole = http2.FlagHeadersEndHeaders
	if h.Type == http2.FrameHeaders && h.Flags&(whole|http2.FlagHeadersPriority) != whole {
		return nil, ErrFrame
	}
	if !h.Flags.Has(http2.FlagDataPadded) { // that of HEADERS is the same
		return b, nil
	}
	if len(b) == 0 || int(b[0]) >= len(b) {
		return nil, ErrFrame
	}
	return b[1 : len(b)-int(b[0])], nil
}

// EachSetting calls f for each setting of the payload of a frame SETTINGS.
func EachSetting(b []byte, f func(http2.Setting)) error {
	const size = 6
	if len(b)%size != 0 {
		return ErrFrame
	}
	for ; len(b) > 0; b = b[size:] {
		f(http2.Setting{ID: http2.SettingID(binary.BigEndian.Uint16(b)), Val: binary.BigEndian.Uint32(b[2:])})
	}
	return nil
}

// AppendWord appends a frame whose payload is one number: RST_STREAM or WINDOW_UPDATE.
func AppendWord(b []byte, kind http2.FrameType, stream, n uint32) []byte {
	return binary.BigEndian.AppendUint32(AppendHead(b, 4, kind, 0, stream), n)
}

// ParseWord returns the number of such a frame, without its highest bit.
func ParseWord(b []byte) (uint32, error) {
	if len(b) != 4 {
		return 0, ErrFrame
	}
	return binary.BigEndian.Uint32(b) &^ (1 << 31), nil
}

// GoAway reads the payload of a frame GOAWAY: the last stream that the peer has processed, or will, the reason's code,
// and its words.
func GoAway(b []byte) (last, code uint32, words []byte, err error) {
	const least = 8
	if len(b) < least {
		return 0, 0, nil, ErrFrame
	}
	return binary.BigEndian.Uint32(b) &^ (1 << 31), binary.BigEndian.Uint32(b[4:]), b[least:], nil
}

// Answer has the headers of an answer that say how a call fared.
type Answer struct {
	HTTP    string // :status; empty in trailers
	GRPC    bool   // the content is gRPC's
	Ended   bool   // there is a grpc-status
	Status  codes.Code
	Message string // grpc-message, decoded
	// Broken: the block was valid, but not its fields.
	Broken bool
}

// Headers reads the blocks of headers of a connection, in their order.
type Headers struct {
	decoder *hpack.Decoder
	answer  Answer
}

// NewHeaders returns a reader of headers.
func NewHeaders() *Headers {
	h := &Headers{}
	h.decoder = hpack.NewDecoder(HeaderTable, h.take)
	h.decoder.SetMaxStringLength(MaxHeaders)
	return h
}

// Read reads a whole block.
func (h *Headers) Read(block []byte) (*Answer, error) {
	h.answer = Answer{}
	if _, err := h.decoder.Write(block); err != nil {
		return nil, errors.Join(ErrHeaders, err)
	}
	if err := h.decoder.Close(); err != nil {
		return nil, errors.Join(ErrHeaders, err)
	}
	return &h.answer, nil
}

func (h *Headers) take(f hpack.HeaderField) {
	a := &h.answer
	switch f.Name {
	case ":status":
		a.HTTP = f.Value
	case "content-type":
		const grpc = "application/grpc"
		a.GRPC = len(f.Value) >= len(grpc) && f.Value[:len(grpc)] == grpc
	case "grpc-status":
		n, err := strconv.ParseUint(f.Value, 10, 16)
		a.Ended, a.Status, a.Broken = true, codes.Code(n), a.Broken || err != nil
	case "grpc-message":
		a.Message = unescape(f.Value)
	}
}

// unescape undoes the escapes of a grpc-message: bytes outside of printable ASCII, and %, are %XX. What is no escape
// stays as it is.
func unescape(text string) string {
	var b []byte
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(n))
				i += 2
				continue
			}
		}
		b = append(b, text[i])
	}
	return string(b)
}

const (
	// PrefixSize is the size of a message's prefix: whether it is compressed, and its length.
	PrefixSize      = 5
	compressed byte = 1
)

// AppendPrefix appends the prefix of a message of gRPC, not compressed.
func AppendPrefix(b []byte, length int) []byte {
	return binary.BigEndian.AppendUint32(append(b, 0), uint32(length)) //nolint:gosec // of a message in memory
}

// ParsePrefix reads the prefix of a message; ok is false for a compressed one, which we did not ask for.
func ParsePrefix(b []byte) (length uint32, ok bool) {
	return binary.BigEndian.Uint32(b[1:]), b[0]&compressed == 0
}

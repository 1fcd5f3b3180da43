package rocketmq5

import (
	"encoding/binary"
	"errors"
	"strconv"

	"golang.org/x/net/http2/hpack"
)

// Preface begins a connection of a client; its frame SETTINGS follows (RFC 9113, section 3.4).
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Types of frames (section 6).
const (
	FrameData         = 0
	FrameHeaders      = 1
	FrameReset        = 3
	FrameSettings     = 4
	FramePush         = 5
	FramePing         = 6
	FrameGoAway       = 7
	FrameWindow       = 8
	FrameContinuation = 9
)

// Flags of frames.
const (
	FlagEndStream  = 1
	FlagAck        = 1 // of SETTINGS and PING
	FlagEndHeaders = 4
	flagPadded     = 8
	flagPriority   = 32
)

// Settings (section 6.5.2).
const (
	SettingHeaderTable = 1
	SettingPush        = 2
	SettingMaxStreams  = 3
	SettingWindow      = 4
	SettingMaxFrame    = 5
	SettingMaxHeaders  = 6
)

// Values of settings until a peer sends others, and limits.
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

// Codes of errors of streams and connections (section 7).
const (
	CodeRefusedStream = 7
	CodeCancel        = 8
)

// Errors of a peer.
var (
	ErrFrame   = errors.New("a frame of HTTP/2 is malformed")
	ErrHeaders = errors.New("a block of headers is malformed or too large")
)

// Head is the head of a frame.
type Head struct {
	Length      int
	Type, Flags byte
	Stream      uint32
}

// ParseHead reads the head of a frame from HeadSize bytes.
func ParseHead(b []byte) Head {
	return Head{
		int(b[0])<<16 | int(b[1])<<8 | int(b[2]), b[3], b[4], binary.BigEndian.Uint32(b[5:]) &^ (1 << 31),
	}
}

// AppendHead appends the head of a frame.
func AppendHead(b []byte, h Head) []byte {
	b = append(b, byte(h.Length>>16), byte(h.Length>>8), byte(h.Length), h.Type, h.Flags)
	return binary.BigEndian.AppendUint32(b, h.Stream)
}

// Payload returns the payload of a frame DATA or HEADERS without padding. Headers must be whole, as peers are told that
// they must fit into a frame, and without a priority, which only clients have.
func (h *Head) Payload(b []byte) ([]byte, error) {
	if h.Type == FrameHeaders && h.Flags&(FlagEndHeaders|flagPriority) != FlagEndHeaders {
		return nil, ErrFrame
	}
	if h.Flags&flagPadded == 0 {
		return b, nil
	}
	if len(b) == 0 || int(b[0]) >= len(b) {
		return nil, ErrFrame
	}
	return b[1 : len(b)-int(b[0])], nil
}

// AppendSettings appends a frame SETTINGS of pairs of a setting and its value.
func AppendSettings(b []byte, pairs ...uint32) []byte {
	b = AppendHead(b, Head{Length: 3 * len(pairs), Type: FrameSettings})
	for i := 0; i < len(pairs); i += 2 {
		b = binary.BigEndian.AppendUint16(b, uint16(pairs[i])) //nolint:gosec // one of the constants
		b = binary.BigEndian.AppendUint32(b, pairs[i+1])
	}
	return b
}

// EachSetting calls f for each setting of the payload of a frame SETTINGS.
func EachSetting(b []byte, f func(setting uint16, value uint32)) error {
	const size = 6
	if len(b)%size != 0 {
		return ErrFrame
	}
	for ; len(b) > 0; b = b[size:] {
		f(binary.BigEndian.Uint16(b), binary.BigEndian.Uint32(b[2:]))
	}
	return nil
}

// AppendWord appends a frame whose payload is one number: RST_STREAM or WINDOW_UPDATE.
func AppendWord(b []byte, kind byte, stream, n uint32) []byte {
	return binary.BigEndian.AppendUint32(AppendHead(b, Head{Length: 4, Type: kind, Stream: stream}), n)
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
	Status  int    // grpc-status; -1 if there is none
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
	h.answer = Answer{Status: -1}
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
		a.Status, a.Broken = int(n), a.Broken || err != nil //nolint:gosec // of 16 bits
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

// Statuses of gRPC.
const (
	StatusOK                   = 0
	StatusCancelled            = 1
	StatusInvalid              = 3
	StatusDeadline             = 4
	StatusPermission           = 7
	StatusExhausted            = 8
	StatusUnimplemented        = 12
	StatusUnavailable          = 14
	StatusUnauthenticated      = 16
	maxStatus                  = 16
	PrefixSize                 = 5 // of a message: whether it is compressed, and its length
	compressed            byte = 1
)

// StatusName is the name of a status of gRPC.
func StatusName(status int) string {
	names := [maxStatus + 1]string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
	if status >= 0 && status < len(names) {
		return names[status]
	}
	return "status " + strconv.Itoa(status)
}

// AppendPrefix appends the prefix of a message of gRPC, not compressed.
func AppendPrefix(b []byte, length int) []byte {
	return binary.BigEndian.AppendUint32(append(b, 0), uint32(length)) //nolint:gosec // of a message in memory
}

// ParsePrefix reads the prefix of a message; ok is false for a compressed one, which we did not ask for.
func ParsePrefix(b []byte) (length uint32, ok bool) {
	return binary.BigEndian.Uint32(b[1:]), b[0]&compressed == 0
}

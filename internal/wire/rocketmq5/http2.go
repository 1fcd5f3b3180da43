package rocketmq5

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
)

// Values of settings until a peer sends others, and limits (RFC 9113, section 6.5.2).
const (
	HeadSize      = 9 // of a frame
	DefaultWindow = 1<<16 - 1
	MaxWindow     = 1<<31 - 1
	LeastMaxFrame = 1 << 14   // the frames that we accept have no more bytes: we do not ask for more
	MostMaxFrame  = 1<<24 - 1 // that a peer may accept
	HeaderTable   = 4096
	// MaxHeaders is the largest size of a block of headers in bytes: it fits into a frame.
	MaxHeaders = LeastMaxFrame
)

// ErrHeaders is the error about headers of a peer.
var ErrHeaders = errors.New("a block of headers is malformed or too large")

// AppendHead appends the head of a frame.
func AppendHead(b []byte, length int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

// AppendWord appends a frame whose payload is one number: RST_STREAM or WINDOW_UPDATE.
func AppendWord(b []byte, kind http2.FrameType, stream, n uint32) []byte {
	return binary.BigEndian.AppendUint32(AppendHead(b, 4, kind, 0, stream), n)
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
	_, err := h.decoder.Write(block)
	if err == nil {
		err = h.decoder.Close()
	}
	if err != nil {
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
		a.GRPC = strings.HasPrefix(f.Value, "application/grpc")
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

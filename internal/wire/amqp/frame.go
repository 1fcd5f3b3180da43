package amqp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Protocol headers, which begin each layer of a connection (Transport, section 2.2; Security, sections 5.2 and 5.3).
const (
	ProtocolHeaderSize = 8

	HeaderAMQP = "AMQP\x00\x01\x00\x00"
	HeaderSASL = "AMQP\x03\x01\x00\x00"
)

const (
	// FrameHeaderSize is the number of bytes before a frame's body, without an extended header (Transport, section
	// 2.3.1).
	FrameHeaderSize = 8
	// MinMaxFrameSize is the size of frames that every peer takes, and the largest of SASL frames (Transport, section
	// 2.4.1; Security, section 5.3.1).
	MinMaxFrameSize = 512
)

// The types of frames (Transport, section 2.3.1; Security, section 5.3.1).
const (
	FrameAMQP uint8 = 0
	FrameSASL uint8 = 1
)

// Frame is one frame as it was read.
type Frame struct {
	Type    uint8
	Channel uint16 // of no meaning in SASL frames
	// Body is a performative and its payload, for [ParseBody]. It is empty in heartbeats. It is valid until the next
	// frame is read.
	Body []byte
}

// BeginFrame appends the head of a frame. Append its body, and call [EndFrame].
func BeginFrame(b []byte, kind uint8, channel uint16) []byte {
	return append(b, 0, 0, 0, 0, 2, kind, byte(channel>>8), byte(channel))
}

// EndFrame writes the size of the frame that begins at b[at] and ends with b.
func EndFrame(b []byte, at int) { binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at)) }

// AppendHeartbeat appends an empty frame (Transport, section 2.4.5).
func AppendHeartbeat(b []byte) []byte {
	return append(b, 0, 0, 0, FrameHeaderSize, 2, FrameAMQP, 0, 0)
}

// Body is the body of a frame in its parts.
type Body struct {
	// Kind tells the performative, and which Decode method is for it.
	Kind Descriptor
	// Fields are the performative's.
	Fields Decoder
	// Payload follows the performative: in transfers a message, or a part of one. It is within the frame.
	Payload []byte
}

// ParseBody takes the performative of any kind at the front of a frame's body. It fails with a *[DecodeError].
func ParseBody(body []byte) (p Body, err error) {
	d := NewDecoder(body)
	p.Kind = d.Descriptor()
	if !d.list(&p.Fields) && d.err == nil {
		d.fail(ErrType)
	}
	if d.err != nil {
		return Body{}, &DecodeError{Type: "performative", Err: d.err}
	}
	p.Payload = d.Rest()
	return p, nil
}

// Input is a source of frames, such as a [bufio.Reader], which has the same methods.
type Input interface {
	Peek(n int) ([]byte, error)
	Discard(n int) (int, error)
	Size() int
}

var _ Input = (*bufio.Reader)(nil)

// FrameReader reads frames and protocol headers. Bodies of frames are returned in place, within the buffer of its
// input. It is for one goroutine.
type FrameReader struct {
	r   Input
	max uint32
}

// NewFrameReader returns a reader of frames of at most maxSize bytes, but no more than the buffer of r has; less than
// [MinMaxFrameSize] is that.
func NewFrameReader(r Input, maxSize uint32) *FrameReader {
	return &FrameReader{r: r, max: min(max(maxSize, MinMaxFrameSize), uint32(r.Size()))}
}

// ReadProtocolHeader returns the next [ProtocolHeaderSize] bytes, to be compared with [HeaderAMQP] and the others. A
// peer that speaks another protocol may send less: io.ErrUnexpectedEOF.
func (f *FrameReader) ReadProtocolHeader() (h [ProtocolHeaderSize]byte, err error) {
	b, err := f.peek(ProtocolHeaderSize)
	copy(h[:], b)
	if err == nil {
		_, err = f.r.Discard(ProtocolHeaderSize)
	}
	return h, err
}

// Next returns the next frame. It refuses a frame that is too large, or has a contradictory head, before reading it,
// with a *[FrameError]. At the end of the input between frames the error is io.EOF, within a frame io.ErrUnexpectedEOF.
// Other errors are the input's. After a deadline that has passed, Next may be called again: nothing is lost. Frames of
// any type and heartbeats are returned alike.
func (f *FrameReader) Next() (Frame, error) {
	head, err := f.peek(FrameHeaderSize)
	if err != nil {
		return Frame{}, err
	}
	size, offset := binary.BigEndian.Uint32(head), head[4]
	switch {
	case size > f.max:
		return Frame{}, &FrameError{Size: size, Max: f.max}
	case offset < 2 || uint32(offset)*4 > size:
		return Frame{}, &FrameError{Size: size, DataOffset: offset}
	}
	b, err := f.r.Peek(int(size))
	if err != nil {
		return Frame{}, within(err)
	}
	_, err = f.r.Discard(int(size)) // it does not touch the bytes
	return Frame{Type: b[5], Channel: binary.BigEndian.Uint16(b[6:]), Body: b[4*int(b[4]):]}, err
}

func (f *FrameReader) peek(n int) ([]byte, error) {
	b, err := f.r.Peek(n)
	if err != nil && len(b) > 0 {
		return b, within(err)
	}
	return b, err
}

// within is an error in the middle of something.
func within(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Codes of a SASL outcome (Security, section 5.3.3.6).
const (
	SASLOK   uint8 = 0
	SASLAuth uint8 = 1 // the credentials are wrong; larger codes are errors of the system
)

// SASL is a frame of a login (Security, section 5.3.3). Its kind decides which fields it has: [DescMechanisms], the
// server's first; [DescInit], the client's choice; [DescChallenge] and [DescResponse]; [DescOutcome], the verdict.
type SASL struct {
	Kind       Descriptor
	Mechanisms []string // in order of preference, at least one; mandatory in mechanisms
	Mechanism  string   // mandatory in an init
	Hostname   string   // of an init; "": none
	// Data is within the frame. It may give away a password. It is mandatory in challenges and responses; nil: none.
	Data []byte
	Code uint8 // of an outcome, one of the constants; mandatory
}

// String leaves out the data.
func (s SASL) String() string { return fmt.Sprintf("sasl %q", s.Mechanism) }

// GoString is String.
func (s SASL) GoString() string { return s.String() }

// Decode reads the fields of the kind that is set; see [ParseBody]. It fails with a *[DecodeError].
func (s *SASL) Decode(f *Decoder) error {
	*s = SASL{Kind: s.Kind}
	switch s.Kind {
	case DescMechanisms:
		if s.Mechanisms = f.Symbols(); s.Mechanisms == nil {
			f.fail(ErrMissing)
		}
		return f.wrap("sasl-mechanisms")
	case DescInit:
		s.Mechanism, s.Data, s.Hostname = f.mustText(), f.Bytes(), f.text()
		return f.wrap("sasl-init")
	case DescOutcome:
		if f.Peek() == CodeNull {
			f.fail(ErrMissing)
		}
		s.Code, s.Data = f.Ubyte().V, f.Bytes()
		return f.wrap("sasl-outcome")
	}
	s.Data = f.mustBinary()
	return f.wrap("sasl-step")
}

// AppendFrame appends a frame.
func (s *SASL) AppendFrame(b []byte) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameSASL, 0), s.Kind)
	switch s.Kind {
	case DescMechanisms:
		w.symbols(s.Mechanisms)
	case DescInit:
		w.mustSymbol(s.Mechanism)
		w.sized(CodeBin8, s.Data)
		w.str(s.Hostname)
	case DescOutcome:
		w.ubyte(s.Code)
		w.sized(CodeBin8, s.Data)
	default:
		w.binary(s.Data)
	}
	return w.frame(at)
}

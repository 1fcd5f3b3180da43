package stomp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// maxCommand bounds the first line of a frame.
	maxCommand = 32
	// maxHead bounds the header lines of a frame, in bytes. Brokers send some 14 headers of a few bytes each, and the
	// properties of the message.
	maxHead = 1 << 20
	// maxWordsRead is how many bytes of the body of an ERROR are kept for quoting. The rest is passed over.
	maxWordsRead = 16 << 10
)

// inbound is a frame as far as the driver looks at it. Its slices are valid until the next call of scanner.next.
type inbound struct {
	kind        byte        // one of the kinds below
	receipt     receipt     // of RECEIPT; its kind is 0 if it is none of ours
	sub         int64       // of MESSAGE: subscription, -1 if there is none of ours
	ack         []byte      // of MESSAGE: the value that an ACK has to name, escaped as it came
	time        int64       // of MESSAGE: the time property
	hasTime     bool        //
	id          driver.ID   // of MESSAGE; zero if there is none
	redelivered bool        // of MESSAGE
	encoded     bool        // of MESSAGE: the body is an AMQP message, see amqpEncoded
	named       bool        // there was a receipt-id
	body        []byte      // of MESSAGE
	other       *wire.Frame // of other kinds
}

// Kinds of frames.
const (
	kindMessage = 'M'
	kindReceipt = 'R'
	kindOther   = 'O'
)

// scanner reads frames. MESSAGE and RECEIPT, of which there is one per message, are read without allocating: the
// frame package makes a frame, a header list and a string per header line of them, see BenchmarkRead. It also takes
// whatever length a broker gives: here each is held against its limit before there is memory for it.
type scanner struct {
	in      *transport.Input
	maxBody int
	version wire.Version
	view    []byte // the unread bytes in the input's buffer, behind the bytes taken
	taken   int    // how many bytes of the input's buffer have been read
	large   []byte // a line or a body that is not all in the input's buffer
	ack     []byte
	id      []byte
	ids     driver.IDReader
}

// newScanner returns a scanner of frames with bodies of up to maxBody bytes.
func newScanner(in *transport.Input, maxBody int) *scanner {
	return &scanner{in: in, maxBody: maxBody}
}

// amqpEncoded is the header with which ActiveMQ Classic marks messages whose body is all of an AMQP message, headers,
// properties and body in AMQP's encoding: those of AMQP connectors whose transformer is not jms.
const amqpEncoded = "JMS_AMQP_NATIVE"

// errNotSTOMP is for data that break the rules of the protocol.
var errNotSTOMP = errors.New("not a STOMP frame")

// errHead is for a frame with more than maxHead bytes of headers.
func errHead() error {
	return fmt.Errorf("%w: its headers have more than the %d bytes that perfmq accepts", errNotSTOMP, maxHead)
}

// errBody is for a frame with a body of size bytes, or of more than perfmq accepts if that is below zero.
func (s *scanner) errBody(kind byte, size int64) error {
	what := fmt.Sprintf("a body of %d bytes", size)
	if size < 0 {
		what = "a body without an end"
	}
	if kind == kindMessage {
		return driver.Errorf(driver.ClassTooLarge, "", "--max-message-size SIZE accepts larger messages",
			"the broker sends a message with %s; perfmq accepts at most %d", what, s.maxBody)
	}
	return fmt.Errorf("%w: it has %s; perfmq accepts at most %d", errNotSTOMP, what, s.maxBody)
}

// next reads the next frame, over heart-beats.
func (s *scanner) next(f *inbound) error {
	*f = inbound{sub: -1}
	for {
		if err := s.fill(1); err != nil {
			return err
		}
		if c := s.view[0]; c != '\n' && c != '\r' {
			break
		}
		s.take(1)
	}
	if err := s.fill(len("MESSAGE\n")); err != nil { // no frame is shorter
		return unexpected(err)
	}
	switch string(s.view[:len(wire.MESSAGE)]) {
	case wire.MESSAGE:
		f.kind = kindMessage
	case wire.RECEIPT:
		f.kind = kindReceipt
	default:
		f.kind = kindOther
		var err error
		f.other, err = s.other()
		return unexpected(err)
	}
	return unexpected(s.rest(f))
}

// unexpected says that a frame was cut off where the reader just says that the input ended.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// rest reads a MESSAGE or RECEIPT.
func (s *scanner) rest(f *inbound) error {
	if line, err := s.line(maxCommand); err != nil || len(line) != len(wire.MESSAGE) {
		return cmpErr(err, errNotSTOMP)
	}
	length, total := int64(-1), 0
	s.ack, s.id = s.ack[:0], s.id[:0]
	for {
		key, value, err := s.headerLine(&total)
		if err != nil {
			return err
		}
		if key == nil {
			break
		}
		if err := s.header(f, key, value, &length); err != nil {
			return err
		}
	}
	if f.ack = s.ack; s.version != wire.V12 || len(f.ack) == 0 {
		f.ack = s.id
	}
	return s.body(f, length)
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// headerLine reads a header line, and adds its size to the total of earlier ones; key is nil behind the last one.
func (s *scanner) headerLine(total *int) (key, value []byte, err error) {
	line, err := s.line(maxHead)
	if err != nil || len(line) == 0 {
		return nil, nil, err
	}
	if *total += len(line) + 1; *total > maxHead {
		return nil, nil, errHead()
	}
	key, value, ok := wire.CutHeader(line)
	if !ok {
		return nil, nil, fmt.Errorf("%w: header line %.40q", errNotSTOMP, line)
	}
	return key, value, nil
}

// header keeps the values that the driver needs from one header. The first of several with one name counts (STOMP 1.2,
// "Repeated Header Entries").
func (s *scanner) header(f *inbound, key, value []byte, length *int64) error {
	switch string(key) { // does not allocate
	case "content-length":
		return s.contentLength(f.kind, value, length)
	case "receipt-id":
		if !f.named {
			f.named = true
			if r, ok := parseReceipt(value); ok {
				f.receipt = r
			}
		}
	case "subscription":
		if n, ok := wire.ParseNumber(value); ok && f.sub < 0 {
			f.sub = int64(n) //nolint:gosec // at most 19 digits: fits but for a sign, which no subscription has
		}
	case "message-id":
		if len(s.id) == 0 {
			s.id = append(s.id, value...)
		}
	case "ack":
		if len(s.ack) == 0 {
			s.ack = append(s.ack, value...)
		}
	case timeHeader:
		if !f.hasTime {
			f.time, f.hasTime = parseInteger(value)
		}
	case driver.IDProperty:
		if f.id == (driver.ID{}) {
			f.id = s.ids.Read(value)
		}
	case "redelivered":
		f.redelivered = f.redelivered || string(value) == "true"
	case amqpEncoded:
		f.encoded = f.encoded || string(value) == "true"
	}
	return nil
}

// contentLength reads a content-length, unless there was one.
func (s *scanner) contentLength(kind byte, value []byte, length *int64) error {
	n, ok := wire.ParseNumber(value)
	switch {
	case *length >= 0:
	case !ok || n > math.MaxInt64:
		return fmt.Errorf("%w: content-length %.40q", errNotSTOMP, value)
	case n > uint64(s.maxBody): //nolint:gosec // above zero
		return s.errBody(kind, int64(n))
	default:
		*length = int64(n)
	}
	return nil
}

// delivery returns the delivery for the consumer; body and the rest are valid as long as f.
func (f *inbound) delivery() driver.Delivery {
	return driver.Delivery{Time: f.time, HasTime: f.hasTime, ID: f.id, Redelivered: f.redelivered, Body: f.body}
}

// parseInteger reads a decimal integer.
func parseInteger(b []byte) (int64, bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	n, ok := wire.ParseNumber(b)
	if !ok || n > 1<<63-1 {
		return 0, false
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), true
}

// line reads a line of at most limit bytes without its end; it is valid until the next read.
func (s *scanner) line(limit int) ([]byte, error) {
	line, err := s.upTo('\n', limit, errHead)
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line, []byte{'\r'}), nil
}

// fill waits until n bytes or more are in view, which is no more than the input's buffer has room for.
func (s *scanner) fill(n int) error {
	if len(s.view) >= n {
		return nil
	}
	s.passed()
	if _, err := s.in.Peek(n); err != nil {
		return err
	}
	var err error
	s.view, err = s.in.Peek(s.in.Buffered())
	return err
}

// take reads n bytes that are in view. They are valid until the next fill.
func (s *scanner) take(n int) []byte {
	b := s.view[:n]
	s.view = s.view[n:]
	s.taken += n
	return b
}

// passed tells the input how many bytes have been read.
func (s *scanner) passed() {
	_, _ = s.in.Discard(s.taken) // they are there
	s.view, s.taken = nil, 0
}

// upTo reads up to the byte end, which it cuts off. Data that are not all in the buffer and have more than limit bytes
// before end are tooLong. The bytes are valid until the next read.
func (s *scanner) upTo(end byte, limit int, tooLong func() error) ([]byte, error) {
	if at := bytes.IndexByte(s.view, end); at >= 0 {
		return s.take(at + 1)[:at], nil
	}
	for s.large = s.large[:0]; ; {
		if err := s.fill(1); err != nil {
			return nil, err
		}
		part, ended := s.view, false
		if at := bytes.IndexByte(part, end); at >= 0 {
			part, ended = part[:at], true
		}
		if len(s.large)+len(part) > limit {
			return nil, tooLong()
		}
		s.large = append(s.large, part...)
		s.take(len(part))
		if ended {
			s.take(1)
			return s.large, nil
		}
	}
}

// body reads the body, of length bytes or, if that is below zero, up to the NUL that ends the frame.
func (s *scanner) body(f *inbound, length int64) (err error) {
	switch {
	case length < 0:
		f.body, err = s.upTo(0, s.maxBody, func() error { return s.errBody(f.kind, -1) })
		if err == nil && len(f.body) > s.maxBody {
			return s.errBody(f.kind, int64(len(f.body)))
		}
		return err
	case length < int64(s.in.Size()):
		if err := s.fill(int(length) + 1); err != nil {
			return err
		}
		b := s.take(int(length) + 1)
		if b[length] != 0 {
			return errNoNUL(length)
		}
		f.body = b[:length]
		return nil
	}
	s.passed()
	if s.large, err = transport.ReadBody(s.in, s.large, int(length)); err != nil {
		return err
	}
	f.body = s.large
	return s.end(length)
}

// end reads the NUL behind a body of length bytes.
func (s *scanner) end(length int64) error {
	if err := s.fill(1); err != nil {
		return err
	}
	if s.take(1)[0] != 0 {
		return errNoNUL(length)
	}
	return nil
}

func errNoNUL(length int64) error {
	return fmt.Errorf("%w: no NUL after a body of %d bytes", errNotSTOMP, length)
}

package stomp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	readBuffer = 64 << 10
	// maxHeaders bounds the header lines of a frame, and a body without content-length.
	maxHeaders = 16 << 20
	// maxBody bounds content-length: what Java brokers can hold in one message.
	maxBody = 1<<31 - 1
	// bodyStep is by how much the buffer for a large body grows at least, as its bytes arrive: a broken length must not
	// cost memory.
	bodyStep = 1 << 20
)

// inbound is a frame as far as the driver looks at it. Its slices are valid until the next call of scanner.next.
type inbound struct {
	kind        byte         // one of the kinds below
	receipt     []byte       // of RECEIPT: receipt-id
	sub         int64        // of MESSAGE: subscription, -1 if there is none of ours
	ack         []byte       // of MESSAGE: what an ACK has to name, escaped as it came
	time        int64        // of MESSAGE: the time property
	hasTime     bool         //
	id          driver.ID    // of MESSAGE; zero if there is none
	redelivered bool         // of MESSAGE
	encoded     bool         // of MESSAGE: the body is an AMQP message, see amqpEncoded
	body        []byte       // of MESSAGE
	other       *frame.Frame // of other kinds
}

// Kinds of frames.
const (
	kindMessage = 'M'
	kindReceipt = 'R'
	kindOther   = 'O'
)

// scanner reads frames. MESSAGE and RECEIPT, of which there is one per message, are read without allocating: the
// frame package makes a frame, a header list and a string per header line of them, see BenchmarkRead. All else is left
// to that package.
type scanner struct {
	r       *bufio.Reader
	general *frame.Reader
	version version
	pending int    // bytes of the last body that are still in r
	long    []byte // a line that does not fit r
	large   []byte // a body that does not fit r
	receipt []byte
	ack     []byte
	id      []byte
}

func newScanner(r io.Reader) *scanner {
	s := &scanner{r: bufio.NewReaderSize(r, readBuffer)}
	s.general = frame.NewReaderSize(s.r, readBuffer) // takes s.r as it is
	return s
}

// amqpEncoded is the header with which ActiveMQ Classic marks messages whose body is all of an AMQP message, headers,
// properties and body in AMQP's encoding: those of AMQP connectors whose transformer is not jms.
const amqpEncoded = "JMS_AMQP_NATIVE"

var (
	errNotSTOMP    = errors.New("not a STOMP frame")
	errHeaderLimit = fmt.Errorf("a frame's headers are longer than %d bytes", maxHeaders)
)

// next reads the next frame, over heart-beats.
func (s *scanner) next(f *inbound) error {
	*f = inbound{sub: -1}
	if s.pending > 0 {
		_, _ = s.r.Discard(s.pending) // they are there
		s.pending = 0
	}
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return err
		}
		if c != '\n' && c != '\r' {
			_ = s.r.UnreadByte()
			break
		}
	}
	head, err := s.r.Peek(len("MESSAGE\n")) // no frame is shorter
	if err != nil {
		return unexpected(err)
	}
	switch string(head[:7]) {
	case frame.MESSAGE:
		f.kind = kindMessage
	case frame.RECEIPT:
		f.kind = kindReceipt
	default:
		f.kind = kindOther
		f.other, err = s.general.Read()
		if errors.Is(err, frame.ErrInvalidCommand) || errors.Is(err, frame.ErrInvalidFrameFormat) {
			err = errNotSTOMP
		}
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
	if line, err := s.line(); err != nil || len(line) != len(frame.MESSAGE) {
		return cmpErr(err, errNotSTOMP)
	}
	length, total := int64(-1), 0
	s.ack, s.id = s.ack[:0], s.id[:0]
	for {
		line, err := s.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			break
		}
		if total += len(line); total > maxHeaders {
			return errHeaderLimit
		}
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 {
			return fmt.Errorf("%w: header line %.40q", errNotSTOMP, line)
		}
		if err := s.header(f, line[:colon], line[colon+1:], &length); err != nil {
			return err
		}
	}
	if f.ack = s.ack; s.version != v12 || len(f.ack) == 0 {
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

// header keeps what matters of one header. The first of several with one name counts (STOMP 1.2, "Repeated Header
// Entries").
func (s *scanner) header(f *inbound, key, value []byte, length *int64) error {
	switch string(key) { // does not allocate
	case frame.ContentLength:
		n, _, ok := cutNumber(value, 0)
		if !ok || n > maxBody {
			return fmt.Errorf("%w: content-length %.40q", errNotSTOMP, value)
		}
		if *length < 0 {
			*length = int64(n)
		}
	case frame.ReceiptId:
		if f.receipt == nil {
			s.receipt = append(s.receipt[:0], value...)
			f.receipt = s.receipt
		}
	case frame.Subscription:
		if n, _, ok := cutNumber(value, 0); ok && f.sub < 0 {
			f.sub = int64(n) //nolint:gosec // at most 19 digits: fits but for a sign, which no subscription has
		}
	case frame.MessageId:
		if len(s.id) == 0 {
			s.id = append(s.id, value...)
		}
	case frame.Ack:
		if len(s.ack) == 0 {
			s.ack = append(s.ack, value...)
		}
	case timeHeader:
		if !f.hasTime {
			f.time, f.hasTime = parseInteger(value)
		}
	case driver.IDProperty:
		if f.id == (driver.ID{}) {
			f.id = driver.ParseID(value)
		}
	case "redelivered":
		f.redelivered = f.redelivered || string(value) == "true"
	case amqpEncoded:
		f.encoded = f.encoded || string(value) == "true"
	}
	return nil
}

// delivery returns what the consumer gets; body and the rest are valid as long as f.
func (f *inbound) delivery() driver.Delivery {
	return driver.Delivery{Time: f.time, HasTime: f.hasTime, ID: f.id, Redelivered: f.redelivered, Body: f.body}
}

// parseInteger reads a decimal integer.
func parseInteger(b []byte) (int64, bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	n, _, ok := cutNumber(b, 0)
	if !ok || n > 1<<63-1 {
		return 0, false
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), true
}

// line reads a line without its end; it is valid until the next read.
func (s *scanner) line() ([]byte, error) {
	line, err := s.upTo('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line, []byte{'\r'}), nil
}

// upTo reads up to the byte end, which it cuts off.
func (s *scanner) upTo(end byte) ([]byte, error) {
	part, err := s.r.ReadSlice(end)
	if err == nil {
		return part[:len(part)-1], nil
	}
	s.long = s.long[:0]
	for errors.Is(err, bufio.ErrBufferFull) {
		if s.long = append(s.long, part...); len(s.long) > maxHeaders {
			return nil, errHeaderLimit
		}
		part, err = s.r.ReadSlice(end)
	}
	if err != nil {
		return nil, err
	}
	s.long = append(s.long, part...)
	return s.long[:len(s.long)-1], nil
}

// body reads the body, of length bytes or, if that is below zero, up to the NUL that ends the frame.
func (s *scanner) body(f *inbound, length int64) (err error) {
	switch {
	case length < 0:
		f.body, err = s.upTo(0)
		return err
	case length < int64(s.r.Size()):
		n := int(length) + 1
		b, err := s.r.Peek(n)
		if err != nil {
			return err
		}
		if b[length] != 0 {
			return fmt.Errorf("%w: no NUL after a body of %d bytes", errNotSTOMP, length)
		}
		f.body, s.pending = b[:length], n
		return nil
	}
	s.large = s.large[:0]
	for left := int(length); left > 0; left = int(length) - len(s.large) {
		old := len(s.large)
		step := min(left, max(bodyStep, old))
		s.large = slices.Grow(s.large, step)[:old+step]
		if _, err := io.ReadFull(s.r, s.large[old:]); err != nil {
			return err
		}
	}
	f.body = s.large
	if c, err := s.r.ReadByte(); err != nil || c != 0 {
		return cmpErr(err, fmt.Errorf("%w: no NUL after a body of %d bytes", errNotSTOMP, length))
	}
	return nil
}

package stomp

import (
	"bytes"
	"io"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// command is the command of a client's frame.
type command uint8

const (
	cmdUnknown command = iota
	cmdSend
	cmdAck
	cmdNack
	cmdConnect
	cmdSubscribe
	cmdUnsubscribe
	cmdBegin
	cmdCommit
	cmdAbort
	cmdDisconnect
)

func commandOf(b []byte) command {
	switch string(b) { // does not allocate
	case "SEND":
		return cmdSend
	case "ACK":
		return cmdAck
	case "NACK":
		return cmdNack
	case "CONNECT", "STOMP":
		return cmdConnect
	case "SUBSCRIBE":
		return cmdSubscribe
	case "UNSUBSCRIBE":
		return cmdUnsubscribe
	case "BEGIN":
		return cmdBegin
	case "COMMIT":
		return cmdCommit
	case "ABORT":
		return cmdAbort
	case "DISCONNECT":
		return cmdDisconnect
	}
	return cmdUnknown
}

// frame is a frame as it came; its slices are valid until the next one is read.
type frame struct {
	command command
	headers []field
	escaped bool // there is a backslash in the headers
	body    []byte
}

// field is a header, with its escapes.
type field struct {
	key, value []byte
	framing    bool // it is not part of the message
}

// get returns the value of a header. The first of several with one name counts (STOMP 1.2, "Repeated Header Entries").
func (f *frame) get(key string) []byte {
	for i := range f.headers {
		if string(f.headers[i].key) == key {
			return f.headers[i].value
		}
	}
	return nil
}

// The bounds of a frame, beside the size of its body.
const (
	maxCommand  = 32
	maxHeaders  = 500      // lines
	maxHead     = 64 << 10 // bytes of all header lines
	readBuffer  = 64 << 10
	largeBuffer = 1 << 20 // larger buffers are not kept
	minRead     = 8 << 10 // less room than that at the buffer's end is not worth a system call
)

// scanner reads frames. One that is not complete stays in the buffer, which grows as its bytes arrive: a broken length
// does not cost memory.
type scanner struct {
	r       io.Reader
	idle    func() error // is called before a read that may wait
	account *store.Account
	maxBody int
	trim    bool // spaces around values are not part of them, as in STOMP 1.0
	buf     []byte
	from    int // the first byte that is not used
	to      int
	need    int // bytes from from on without which the frame cannot be complete
	nul     int // bytes of a body without length that hold no NUL
	f       frame
}

// next returns the next frame. At the end it returns io.EOF, or io.ErrUnexpectedEOF within a frame.
func (s *scanner) next() (*frame, error) {
	s.need, s.nul = 0, 0
	for {
		if s.need == 0 {
			for s.from < s.to && (s.buf[s.from] == '\n' || s.buf[s.from] == '\r') {
				s.from++ // heart-beats, and line ends that may follow a frame
			}
		}
		b := s.buf[s.from:s.to]
		if len(b) > 0 && len(b) >= s.need {
			size, err := s.parse(b)
			if err != nil {
				return nil, err
			}
			if size > 0 {
				s.from += size
				return &s.f, nil
			}
		}
		if err := s.fill(); err != nil {
			if err == io.EOF && s.from < s.to { //nolint:errorlint // readers return it as it is
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// fill reads more.
func (s *scanner) fill() error {
	if err := s.idle(); err != nil {
		return err
	}
	switch {
	case s.from == s.to:
		s.from, s.to = 0, 0
		if len(s.buf) == 0 || len(s.buf) > largeBuffer {
			s.account.Give(int64(max(0, len(s.buf)-readBuffer))) // that of the first size counts with the connection
			s.buf = make([]byte, readBuffer)
		}
	case len(s.buf)-s.to >= minRead:
	case s.from > 0 && len(s.buf)-(s.to-s.from) >= minRead:
		s.to = copy(s.buf, s.buf[s.from:s.to])
		s.from = 0
	default:
		if !s.account.Take(int64(len(s.buf))) {
			return refuse("limit reached: %s", store.ErrNoMemory)
		}
		grown := make([]byte, 2*len(s.buf))
		s.to = copy(grown, s.buf[s.from:s.to])
		s.buf, s.from = grown, 0
	}
	n, err := s.r.Read(s.buf[s.to:])
	s.to += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// parse reads a frame from the beginning of b and returns its size with the NUL; 0 if it is not complete.
func (s *scanner) parse(b []byte) (size int, err error) {
	f := &s.f
	f.headers = f.headers[:0]
	first, end := wire.CutLine(b[:min(len(b), maxCommand)])
	if end == 0 {
		if len(b) >= maxCommand {
			return 0, refuse("this is not STOMP: the first line is longer than any command")
		}
		s.need = len(b) + 1
		return 0, nil
	}
	if f.command = commandOf(first); f.command == cmdUnknown {
		return 0, refuse("invalid frame: unknown command %q", first)
	}
	pos, length := end, -1
	for {
		line, size := wire.CutLine(b[pos:])
		if size == 0 {
			if len(b)-pos > maxHead {
				return 0, errHead()
			}
			s.need = len(b) + 1
			return 0, nil
		}
		pos += size
		if len(line) == 0 {
			break
		}
		if pos > maxHead || len(f.headers) == maxHeaders {
			return 0, errHead()
		}
		if err := s.header(line, &length); err != nil {
			return 0, err
		}
	}
	f.escaped = bytes.IndexByte(b[:pos], '\\') >= 0
	return s.body(b, pos, length)
}

func errHead() error {
	return refuse("invalid frame: more than %d headers, or more than %d bytes of them", maxHeaders, maxHead)
}

// header keeps a header line.
func (s *scanner) header(line []byte, length *int) error {
	key, value, ok := wire.CutHeader(line)
	if !ok {
		return refuse("invalid frame: header line %.40q has no name or no colon", line)
	}
	h := field{key: key, value: value}
	if s.trim {
		h.value = bytes.Trim(h.value, " \t")
	}
	s.f.headers = append(s.f.headers, h)
	if string(h.key) != "content-length" || *length >= 0 {
		return nil
	}
	n, ok := wire.ParseNumber(bytes.Trim(h.value, " "))
	if !ok {
		return refuse("invalid frame: content-length %.40q", h.value)
	}
	if n > uint64(s.maxBody) { //nolint:gosec // above zero
		return s.tooLarge(n)
	}
	*length = int(n) //nolint:gosec // at most maxBody
	return nil
}

func (s *scanner) tooLarge(n uint64) error {
	return refuse("a body of %d bytes is larger than the limit of %d", n, s.maxBody)
}

// body reads the body that begins at pos.
func (s *scanner) body(b []byte, pos, length int) (size int, err error) {
	if length >= 0 {
		if len(b) <= pos+length {
			s.need = pos + length + 1
			return 0, nil
		}
		if b[pos+length] != 0 {
			return 0, refuse("invalid frame: no NUL after a body of content-length %d", length)
		}
		s.f.body = b[pos : pos+length]
		return pos + length + 1, nil
	}
	end := bytes.IndexByte(b[pos+s.nul:], 0)
	switch {
	case end >= 0 && s.nul+end <= s.maxBody:
		s.f.body = b[pos : pos+s.nul+end]
		return pos + s.nul + end + 1, nil
	case end >= 0, len(b)-pos > s.maxBody:
		return 0, s.tooLarge(uint64(len(b) - pos)) //nolint:gosec // above zero
	}
	s.nul, s.need = len(b)-pos, len(b)+1
	return 0, nil
}

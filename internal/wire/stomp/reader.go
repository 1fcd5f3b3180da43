package stomp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Input is the source of a [Reader]: a [bufio.Reader], or a type with its methods.
type Input interface {
	Peek(n int) ([]byte, error)
	Discard(n int) (int, error)
	Buffered() int
	Size() int
}

// Received is a frame as it came. It is valid until the next one is read.
type Received struct {
	Command string // one of the commands
	Headers []Field
	Body    []byte
	head    []byte
}

// Field is a header with its escapes.
type Field struct{ Key, Value []byte }

// Get returns the value of a header, nil without one. The first of several with one name counts ("Repeated Header
// Entries").
func (f *Received) Get(key string) []byte {
	for i := range f.Headers {
		if string(f.Headers[i].Key) == key {
			return f.Headers[i].Value
		}
	}
	return nil
}

// Escaped reports whether the headers contain an escape, or a backslash.
func (f *Received) Escaped() bool { return bytes.IndexByte(f.head, '\\') >= 0 }

// ErrSyntax is for data that are no frames.
var ErrSyntax = errors.New("invalid frame")

// ErrMemory says that [Reader.Memory] has no memory left for a frame.
var ErrMemory = errors.New("no memory for a frame")

// TooLargeError is for a frame with a larger body than the reader accepts. It was not read.
type TooLargeError struct {
	Command     string
	Size, Limit uint64 // without a content-length, the size is that of the part that was read
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a body of %d bytes is larger than the limit of %d", e.Size, e.Limit)
}

// maxCommand bounds the first line of a frame.
const maxCommand = 32

// Reader reads frames in place, within the buffer of its input. One that is larger is gathered in memory of its own,
// which grows as its bytes arrive: a length that is a lie does not cost memory. Nothing is allocated per frame. The
// limits may be changed between two frames.
type Reader struct {
	MaxLines int // of the headers; 0 for no limit
	MaxHead  int // bytes of all header lines
	MaxBody  int // bytes of a body
	// Memory, unless it is nil, is asked for so many bytes more for large frames, or told that so many less are used.
	Memory func(bytes int) bool
	// Memory for large frames is kept up to Keep bytes, 0 for any size, and goes after spareFrames without a use for it.
	Keep int

	in    Input
	view  []byte // the unread bytes in the input's buffer, behind those taken
	taken int    // how many bytes of the input's buffer have been read
	large []byte // a frame that is larger than the input's buffer
	spare int    // frames since there was one
	need  int    // bytes without which the frame cannot be complete
	sized bool   // need is its size
	nul   int    // bytes of a body without a length that hold no NUL
	f     Received
}

// NewReader returns a reader of frames with so many bytes of header lines and of a body at most.
func NewReader(in Input, maxHead, maxBody int) *Reader {
	return &Reader{in: in, MaxHead: maxHead, MaxBody: maxBody}
}

// Next returns the next frame, over heart-beats. At the end it returns io.EOF, or io.ErrUnexpectedEOF within a frame.
func (r *Reader) Next() (*Received, error) {
	if r.large != nil {
		r.letGo()
	}
	for r.need, r.sized, r.nul = 1, false, 0; ; {
		for len(r.view) > 0 && (r.view[0] == '\n' || r.view[0] == '\r') {
			r.take(1) // heart-beats, and line ends that may follow a frame
		}
		if len(r.view) >= r.need {
			size, err := r.parse(r.view)
			if err != nil {
				return nil, err
			}
			if size > 0 {
				r.take(size)
				return &r.f, nil
			}
		}
		if r.need > r.in.Size() {
			return r.gather()
		}
		if err := r.fill(r.need); err != nil {
			if errors.Is(err, io.EOF) && len(r.view) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// spareFrames is the number of frames that fit into the input's buffer after which the memory of a large one goes.
const spareFrames = 1000

// letGo lets the memory for large frames go if it is too large, or was not used for long.
func (r *Reader) letGo() {
	if r.spare++; r.spare <= spareFrames && (r.Keep == 0 || cap(r.large) <= r.Keep) {
		return
	}
	if r.Memory != nil {
		r.Memory(-cap(r.large))
	}
	r.large = nil
}

// gather reads a frame that is larger than the input's buffer.
func (r *Reader) gather() (*Received, error) {
	for r.large, r.spare = r.large[:0], 0; ; {
		old, part := len(r.large), r.view
		if r.sized {
			part = part[:min(len(part), r.need-old)]
		}
		if err := r.grow(old + len(part)); err != nil {
			return nil, err
		}
		if r.large = append(r.large, part...); len(r.large) >= r.need {
			size, err := r.parse(r.large)
			if err != nil {
				return nil, err
			}
			if size > 0 {
				r.take(size - old)
				return &r.f, nil
			}
		}
		r.take(len(r.view))
		if err := r.fill(1); errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
	}
}

// grow makes room for n bytes of a large frame.
func (r *Reader) grow(n int) error {
	have := cap(r.large)
	if n <= have {
		return nil
	}
	size := 2 * have
	if r.sized {
		size = min(size, r.need)
	}
	size = max(size, n)
	if r.Memory != nil && !r.Memory(size-have) {
		return ErrMemory
	}
	r.large = append(make([]byte, 0, size), r.large...)
	return nil
}

// fill waits until n bytes or more are in view, which is no more than the input has room for.
func (r *Reader) fill(n int) error {
	_, _ = r.in.Discard(r.taken) // they are there
	r.taken = 0
	if _, err := r.in.Peek(n); err != nil {
		return err
	}
	var err error
	r.view, err = r.in.Peek(r.in.Buffered())
	return err
}

// take reads n bytes that are in view.
func (r *Reader) take(n int) {
	r.view = r.view[n:]
	r.taken += n
}

// parse reads a frame from the beginning of b and returns its size with the NUL; 0 if it is not complete.
func (r *Reader) parse(b []byte) (size int, err error) {
	f := &r.f
	line, pos := CutLine(b[:min(len(b), maxCommand)])
	switch {
	case pos == 0 && len(b) >= maxCommand:
		return 0, fmt.Errorf("%w: this is not STOMP: the first line is longer than any command", ErrSyntax)
	case pos == 0:
		r.need = len(b) + 1
		return 0, nil
	}
	if f.Command = command(line); f.Command == "" {
		return 0, fmt.Errorf("%w: unknown command %q", ErrSyntax, line)
	}
	headers, length := f.Headers[:0], -1
	for begin := pos; ; {
		line, size := CutLine(b[pos:])
		if size == 0 && len(b)-begin <= r.MaxHead {
			r.need = len(b) + 1
			return 0, nil
		}
		pos += size
		if size > 0 && len(line) == 0 {
			break
		}
		if size == 0 || pos-begin > r.MaxHead || r.MaxLines > 0 && len(headers) == r.MaxLines {
			return 0, r.errHead()
		}
		key, value, ok := CutHeader(line)
		if !ok {
			return 0, fmt.Errorf("%w: header line %.40q has no name or no colon", ErrSyntax, line)
		}
		if length < 0 && string(key) == "content-length" {
			if length, err = r.length(value); err != nil {
				return 0, err
			}
		}
		headers = append(headers, Field{key, value})
	}
	f.Headers, f.head = headers, b[:pos]
	return r.body(b, pos, length)
}

func (r *Reader) errHead() error {
	if r.MaxLines > 0 {
		return fmt.Errorf("%w: more than %d headers, or more than %d bytes of them", ErrSyntax, r.MaxLines, r.MaxHead)
	}
	return fmt.Errorf("%w: more than %d bytes of headers", ErrSyntax, r.MaxHead)
}

// length reads a content-length.
func (r *Reader) length(value []byte) (int, error) {
	n, ok := ParseNumber(bytes.Trim(value, " "))
	switch {
	case !ok:
		return 0, fmt.Errorf("%w: content-length %.40q", ErrSyntax, value)
	case n > uint64(r.MaxBody): //nolint:gosec // above zero
		return 0, r.tooLarge(n)
	}
	return int(n), nil //nolint:gosec // at most MaxBody
}

func (r *Reader) tooLarge(size uint64) error {
	return &TooLargeError{r.f.Command, size, uint64(r.MaxBody)} //nolint:gosec // above zero
}

// body reads the body that begins at pos, of length bytes or, if that is below zero, up to the NUL that ends the frame.
func (r *Reader) body(b []byte, pos, length int) (size int, err error) {
	if length >= 0 {
		end := pos + length
		if len(b) <= end {
			r.need, r.sized = end+1, true
			return 0, nil
		}
		if b[end] != 0 {
			return 0, fmt.Errorf("%w: no NUL after a body of %d bytes", ErrSyntax, length)
		}
		r.f.Body = b[pos:end]
		return end + 1, nil
	}
	at := bytes.IndexByte(b[pos+r.nul:], 0)
	switch end := pos + r.nul + at; {
	case at >= 0 && end-pos <= r.MaxBody:
		r.f.Body = b[pos:end]
		return end + 1, nil
	case at >= 0, len(b)-pos > r.MaxBody:
		return 0, r.tooLarge(uint64(len(b) - pos)) //nolint:gosec // above zero
	}
	r.nul, r.need = len(b)-pos, len(b)+1
	return 0, nil
}

// command returns the command of that name without allocating, or an empty one. STOMP is another name of CONNECT
// ("STOMP or CONNECT Frame").
func command(name []byte) string {
	for _, c := range [...]string{
		SEND, MESSAGE, RECEIPT, ACK, NACK, BEGIN, COMMIT, ABORT, ERROR, CONNECT, CONNECTED, SUBSCRIBE, UNSUBSCRIBE,
		DISCONNECT,
	} {
		if string(name) == c {
			return c
		}
	}
	if string(name) == "STOMP" {
		return CONNECT
	}
	return ""
}

package transport

import (
	"bufio"
	"io"
	"slices"
	"sync"
)

// InputSize is the buffer of an [Input] in bytes: frames up to this size are read in place.
const InputSize = 64 << 10

// buffer is a block of memory that connections share in turn.
type buffer struct{ b []byte }

// Buffers are the memory that the connections of one driver share: a connection needs a buffer only while bytes are in
// it, so that thousands of connections with little traffic share a few. The zero value is ready for use. It is safe
// for concurrent use.
type Buffers struct{ in, out sync.Pool }

func (m *Buffers) getIn() *buffer {
	if b, ok := m.in.Get().(*buffer); ok {
		return b
	}
	return &buffer{make([]byte, InputSize)}
}

func (m *Buffers) putIn(b *buffer) { m.in.Put(b) }

// Input reads from a connection into a buffer that it holds only while bytes are in it. It has methods of
// [bufio.Reader], for one goroutine.
type Input struct {
	conn io.Reader
	net  *Metered // the same as conn; nil if conn lies above it, as under TLS
	mem  *Buffers
	// Idle, unless it is nil, is called before each read that may have to wait: all received bytes have been processed.
	// It is set before the first read.
	Idle func()

	buf  *buffer // nil: empty
	r, w int     // its contents are buf[r:w]
	err  error   // of the connection, returned once the buffer is empty
}

// NewInput returns an input that reads from conn, which is net or lies above it.
func NewInput(conn io.Reader, net *Metered, mem *Buffers) *Input {
	in := &Input{conn: conn, mem: mem}
	if conn == io.Reader(net) && net.polled.usable() {
		in.net = net
	}
	return in
}

// Size returns InputSize.
func (in *Input) Size() int { return InputSize }

// Buffered returns the number of bytes that can be read without waiting.
func (in *Input) Buffered() int { return in.w - in.r }

// Peek returns the next n bytes without consuming them. They are valid until the next read. If it returns fewer, the
// error is the reason: [bufio.ErrBufferFull] if n is larger than the buffer.
func (in *Input) Peek(n int) ([]byte, error) {
	for in.Buffered() < n && in.Buffered() < InputSize && in.err == nil {
		in.fill()
	}
	if n > InputSize {
		return in.bytes(), bufio.ErrBufferFull
	}
	if have := in.Buffered(); have < n {
		return in.bytes(), in.takeErr()
	}
	return in.buf.b[in.r : in.r+n : in.r+n], nil
}

func (in *Input) bytes() []byte {
	if in.buf == nil {
		return nil
	}
	return in.buf.b[in.r:in.w:in.w]
}

// Discard skips the next n bytes, or as many as there are before an error.
func (in *Input) Discard(n int) (discarded int, err error) {
	for left := n; ; {
		skip := min(left, in.Buffered())
		in.r += skip
		left -= skip
		switch {
		case left == 0:
			return n, nil
		case in.err != nil:
			return n - left, in.takeErr()
		}
		in.fill()
	}
}

// Read implements [io.Reader].
func (in *Input) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for in.Buffered() == 0 {
		if in.err != nil {
			return 0, in.takeErr()
		}
		in.fill()
	}
	n := copy(p, in.bytes())
	in.r += n
	return n, nil
}

// takeErr returns the error once: after an expired deadline, reading may continue.
func (in *Input) takeErr() error {
	err := in.err
	in.err = nil
	return err
}

// fill reads once. Afterwards there are bytes or an error.
func (in *Input) fill() {
	if in.Idle != nil {
		in.Idle()
	}
	if in.Buffered() == 0 && in.net != nil {
		in.Release()
		in.buf, in.w, in.err = in.net.polled.readInto(in.mem)
		return
	}
	if in.buf == nil {
		in.buf = in.mem.getIn()
	} else if in.r > 0 {
		in.w = copy(in.buf.b, in.bytes())
		in.r = 0
	}
	var n int
	n, in.err = in.conn.Read(in.buf.b[in.w:])
	if in.w += n; in.w == 0 {
		in.Release()
	}
}

// Release returns the buffer, which is empty or will not be read.
func (in *Input) Release() {
	if in.buf != nil {
		in.mem.putIn(in.buf)
		in.buf = nil
	}
	in.r, in.w = 0, 0
}

// readStep is the smallest growth of the buffer of [ReadBody], in bytes.
const readStep = 1 << 20

// ReadBody reads n bytes into b, from its beginning, and returns them. b grows as the bytes arrive: a false length does
// not cost memory. The caller has checked n against a limit of its own.
func ReadBody(r io.Reader, b []byte, n int) ([]byte, error) {
	for b = b[:0]; len(b) < n; {
		old := len(b)
		step := min(n-old, max(readStep, cap(b)-old, old))
		b = slices.Grow(b, step)[:old+step]
		if _, err := io.ReadFull(r, b[old:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

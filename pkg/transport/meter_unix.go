//go:build unix

package transport

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/perfmq/perfmq/pkg/driver"
)

// maxTransfer bounds a system call, as the net package does: some systems take no more than 2 GiB.
const maxTransfer = 1 << 30

// polledConn makes the system calls itself, to know which of them would block. Without a raw connection it is not
// usable.
type polledConn struct {
	raw     syscall.RawConn
	in, out transfer
	fail    func(op string, err error) error
}

// transfer is one direction.
type transfer struct {
	meter   *driver.Meter
	call    func(fd int, b []byte) (int, error)
	try     func(fd uintptr) bool // made once, so that no transfer allocates
	buf     []byte
	n       int
	err     error
	waiting bool
	now     bool // never wait; else meter measures the waits

	// For a read into a buffer that is acquired only once bytes are there.
	mem  *Buffers
	lent *buffer
}

func (p *polledConn) init(m *Metered, raw syscall.RawConn) {
	p.raw, p.fail = raw, m.opError
	p.in.meter, p.in.call = m.in, readNow
	p.out.call, p.out.now = writeNow, true
	p.in.try, p.out.try = p.in.attempt, p.out.attempt
}

func (p *polledConn) usable() bool { return p.raw != nil }

// attempt makes one system call. It returns false if the call must be repeated once the connection is ready.
func (t *transfer) attempt(fd uintptr) bool {
	if t.mem != nil {
		t.lent = t.mem.getIn()
		t.buf = t.lent.b
	}
	for {
		t.n, t.err = t.call(int(fd), t.buf[:min(len(t.buf), maxTransfer)])
		switch {
		case errors.Is(t.err, syscall.EINTR):
		case t.now && errors.Is(t.err, syscall.EAGAIN):
			return true
		case errors.Is(t.err, syscall.EAGAIN):
			if t.mem != nil {
				t.mem.putIn(t.lent)
				t.lent = nil
			}
			if !t.waiting {
				t.waiting = true
				t.meter.Begin()
			}
			return false
		default:
			return true
		}
	}
}

// move transfers some of b through poll, which calls try until it is done.
func (t *transfer) move(b []byte, poll func(func(uintptr) bool) error) (int, error) {
	t.buf, t.n, t.err = b, 0, nil
	err := poll(t.try)
	t.buf = nil
	if t.waiting {
		t.waiting = false
		t.meter.End()
	}
	if err != nil {
		return 0, err // the connection was closed, or its deadline has passed
	}
	return max(t.n, 0), t.err
}

func (p *polledConn) read(b []byte) (int, error) {
	n, err := p.in.move(b, p.raw.Read)
	switch {
	case err != nil:
		return 0, p.wrap("read", err)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// readInto reads into a buffer of mem; nil if nothing was read.
func (p *polledConn) readInto(mem *Buffers) (*buffer, int, error) {
	p.in.mem = mem
	n, err := p.in.move(nil, p.raw.Read)
	p.in.mem = nil
	b := p.in.lent
	p.in.lent = nil
	switch {
	case err != nil:
		err = p.wrap("read", err)
	case n == 0:
		err = io.EOF
	default:
		return b, n, nil
	}
	if b != nil {
		mem.putIn(b)
	}
	return nil, 0, err
}

// tryWrite writes as much of b as possible without waiting.
func (p *polledConn) tryWrite(b []byte) (written int, err error) {
	for written < len(b) {
		n, err := p.out.move(b[written:], p.raw.Write)
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return written, nil
		case err != nil:
			return written, p.wrap("write", err)
		}
		written += n
	}
	return written, nil
}

func (p *polledConn) wrap(op string, err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		err = os.NewSyscallError(op, number)
	}
	return p.fail(op, err)
}

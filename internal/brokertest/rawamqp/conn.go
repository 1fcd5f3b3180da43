package rawamqp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// maxFrame is the largest frame that we take.
	maxFrame = 128 << 10
	// farewell is how long the peer may take to answer a close.
	farewell = 2 * time.Second
)

var errEnded = errors.New("the broker has ended")

// conn is a connection with one session and one link, all of number 0. Reading is for one goroutine, writing for one.
type conn struct {
	net.Conn
	r        *bufio.Reader
	maxFrame uint32 // the peer's
	window   int64  // transfers that the peer's begin allows
}

// dial connects, without a name and password, and begins a session.
func dial(ctx context.Context, addr string) (*conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := newConn(nc)
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) }) // it fails only once it is closed
	defer stop()
	if err := c.greet(); err != nil {
		_ = nc.Close() // the first error says more
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return c, nil
}

func newConn(nc net.Conn) *conn { return &conn{Conn: nc, r: bufio.NewReaderSize(nc, 2*maxFrame)} }

// greet goes through SASL, open and begin.
func (c *conn) greet() error {
	if err := c.header(headerSASL); err != nil {
		return err
	}
	if _, err := c.expect(saslMechanisms); err != nil {
		return err
	}
	init := frame(frameSASL, described(saslInit, symbol("ANONYMOUS"), binaryOf("anonymous")))
	if _, err := c.Write(init); err != nil {
		return err
	}
	outcome, err := c.expect(saslOutcome)
	if err != nil {
		return err
	}
	if code, _ := outcome.number(); code != 0 {
		return fmt.Errorf("the broker wants a login (SASL code %d)", code)
	}
	if err := c.header(headerAMQP); err != nil {
		return err
	}
	open := frame(frameAMQP, described(opOpen, text("rawamqp"), text("localhost"), number(maxFrame)))
	begin := frame(frameAMQP, described(opBegin, null(), number(0), number(1<<30), number(1<<30)))
	if _, err := c.Write(append(open, begin...)); err != nil {
		return err
	}
	answer, err := c.expect(opOpen)
	if err != nil {
		return err
	}
	answer.next() // container
	answer.next() // host
	c.maxFrame = 1<<32 - 1
	if size, ok := answer.number(); ok {
		c.maxFrame = uint32(size) //nolint:gosec // an uint
	}
	if answer, err = c.expect(opBegin); err != nil {
		return err
	}
	answer.next() // channel
	answer.next() // its first number
	window, _ := answer.number()
	c.window = int64(window) //nolint:gosec // an uint
	return nil
}

func (c *conn) header(h string) error {
	if _, err := c.Write([]byte(h)); err != nil {
		return err
	}
	got := make([]byte, len(h))
	if _, err := io.ReadFull(c.r, got); err != nil {
		return err
	}
	if string(got) != h {
		return fmt.Errorf("the peer does not speak AMQP 1.0: %q", got)
	}
	return nil
}

// attach makes the link.
func (c *conn) attach(queue string, receiver bool) error {
	address := func(kind byte) []byte {
		return described(kind, text(queue), number(0), symbol("session-end"), number(0), boolean(false), null(),
			null(), null(), null(), null(), symbol("queue"))
	}
	source := address(typeSource)
	target := described(typeTarget, text(queue), number(0), symbol("session-end"), number(0), boolean(false), null(), symbol("queue"))
	f := frame(frameAMQP, described(opAttach, text("rawamqp:"+queue), number(0), boolean(receiver), ubyte(0), ubyte(0),
		source, target, null(), null(), number(0)))
	if _, err := c.Write(f); err != nil {
		return err
	}
	if _, err := c.expect(opAttach); err != nil {
		return fmt.Errorf("attach to %s: %w", queue, err)
	}
	return nil
}

// frame reads the next frame that is no heartbeat, and returns its body, valid until the next call.
func (c *conn) frame() ([]byte, error) {
	for {
		head, err := c.r.Peek(frameHead)
		if err != nil {
			return nil, err
		}
		size, offset := int(binary.BigEndian.Uint32(head)), int(head[4])*4
		if size > maxFrame || offset < frameHead || offset > size {
			return nil, fmt.Errorf("a frame of %d bytes with a header of %d", size, offset)
		}
		b, err := c.r.Peek(size) // the buffer is larger than any frame
		if err != nil {
			return nil, err
		}
		if _, err := c.r.Discard(size); err != nil {
			return nil, err
		}
		if size > offset {
			return b[offset:], nil
		}
	}
}

// performative reads the next frame: its descriptor, its fields, and what follows them. What the peer ends is an error.
func (c *conn) performative() (descriptor uint64, in list, payload []byte, err error) {
	body, err := c.frame()
	if err != nil {
		return 0, list{}, nil, err
	}
	l := list{b: body}
	descriptor, in = l.described()
	switch {
	case l.bad:
		return 0, list{}, nil, errors.New("a malformed frame")
	case descriptor == opDetach:
		in.next() // handle
		in.next() // closed
		return 0, list{}, nil, fmt.Errorf("%w the link: %s", errEnded, in.explain())
	case descriptor == opEnd, descriptor == opClose:
		return 0, list{}, nil, fmt.Errorf("%w the connection: %s", errEnded, in.explain())
	}
	return descriptor, in, l.b, nil
}

// expect reads the next frame, which must be that one.
func (c *conn) expect(descriptor uint64) (list, error) {
	got, in, _, err := c.performative()
	if err == nil && got != descriptor {
		err = fmt.Errorf("a frame %#x where %#x was due", got, descriptor)
	}
	return in, err
}

// part says goodbye and closes the connection.
func (c *conn) part() error {
	_ = c.SetDeadline(time.Now().Add(farewell)) // it fails only once the connection is closed
	_, err := c.Write(frame(frameAMQP, described(opClose)))
	for err == nil {
		_, _, _, err = c.performative()
	}
	if errors.Is(err, errEnded) { // as it should
		err = nil
	}
	return errors.Join(err, c.Close())
}

package rawamqp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
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
	r        *wire.FrameReader
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

func newConn(nc net.Conn) *conn {
	return &conn{Conn: nc, r: wire.NewFrameReader(bufio.NewReaderSize(nc, 2*maxFrame), maxFrame)}
}

// greet goes through SASL, open and begin.
func (c *conn) greet() error {
	if err := c.authenticate(); err != nil {
		return err
	}
	if err := c.header(wire.HeaderAMQP); err != nil {
		return err
	}
	open := wire.Open{ContainerID: "rawamqp", Hostname: "localhost", MaxFrameSize: wire.Some[uint32](maxFrame)}
	begin := wire.Begin{IncomingWindow: 1 << 30, OutgoingWindow: 1 << 30}
	if _, err := c.Write(begin.AppendFrame(open.AppendFrame(nil), 0)); err != nil {
		return err
	}
	if err := c.expect(wire.DescOpen, &open); err != nil {
		return err
	}
	c.maxFrame = open.MaxFrameSize.Or(1<<32 - 1)
	if err := c.expect(wire.DescBegin, &begin); err != nil {
		return err
	}
	c.window = int64(begin.IncomingWindow)
	return nil
}

// authenticate logs in as anonymous.
func (c *conn) authenticate() error {
	if err := c.header(wire.HeaderSASL); err != nil {
		return err
	}
	if err := c.expect(wire.DescMechanisms, &wire.SASLMechanisms{}); err != nil {
		return err
	}
	init := wire.SASLInit{Mechanism: "ANONYMOUS", InitialResponse: []byte("anonymous")}
	if _, err := c.Write(init.AppendFrame(nil)); err != nil {
		return err
	}
	var outcome wire.SASLOutcome
	if err := c.expect(wire.DescOutcome, &outcome); err != nil {
		return err
	}
	if outcome.Code != wire.SASLOK {
		return fmt.Errorf("the broker demands a login (SASL code %d)", outcome.Code)
	}
	return nil
}

func (c *conn) header(h string) error {
	if _, err := c.Write([]byte(h)); err != nil {
		return err
	}
	got, err := c.r.ReadProtocolHeader()
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case string(got[:]) != h:
		return fmt.Errorf("the peer does not speak AMQP 1.0: %q", got)
	}
	return nil
}

// attach makes the link.
func (c *conn) attach(queue string, receiver bool) error {
	at := wire.Terminus{Kind: wire.DescSource, Address: wire.Some(queue), Capabilities: []string{"queue"}}
	a := wire.Attach{
		Name: "rawamqp:" + queue, Role: wire.Role(receiver), SenderSettleMode: wire.SenderUnsettled, Source: at, Target: at,
		InitialDeliveryCount: wire.Some[uint32](0),
	}
	a.Target.Kind = wire.DescTarget
	if _, err := c.Write(a.AppendFrame(nil, 0)); err != nil {
		return err
	}
	if err := c.expect(wire.DescAttach, &a); err != nil {
		return fmt.Errorf("attach to %s: %w", queue, err)
	}
	return nil
}

// next reads the next frame that is no heartbeat, valid until the next call. A detach, end or close from the
// peer is an error.
func (c *conn) next() (wire.Body, error) {
	f, err := c.r.Next()
	for err == nil && len(f.Body) == 0 {
		f, err = c.r.Next()
	}
	if err != nil {
		return wire.Body{}, err
	}
	p, err := wire.ParseBody(f.Body)
	if err != nil {
		return p, err
	}
	switch p.Kind {
	case wire.DescDetach:
		var d wire.Detach
		err = d.Decode(&p.Fields)
		return p, errors.Join(err, ended("the link", d.Error))
	case wire.DescEnd, wire.DescClose: // they have the same fields
		var e wire.Close
		err = e.Decode(&p.Fields)
		return p, errors.Join(err, ended("the connection", e.Error))
	}
	return p, nil
}

func ended(what string, reason *wire.Error) error {
	if reason == nil {
		return fmt.Errorf("%w %s: without a reason", errEnded, what)
	}
	return fmt.Errorf("%w %s: %w", errEnded, what, reason)
}

// expect reads the next frame, which must be of that kind.
func (c *conn) expect(kind wire.Descriptor, into interface{ Decode(f *wire.Decoder) error }) error {
	p, err := c.next()
	if err != nil {
		return err
	}
	if p.Kind != kind {
		return fmt.Errorf("a frame %#x where %#x was due", uint64(p.Kind), uint64(kind))
	}
	return into.Decode(&p.Fields)
}

// part says goodbye and closes the connection.
func (c *conn) part() error {
	_ = c.SetDeadline(time.Now().Add(farewell)) // it fails only once the connection is closed
	_, err := c.Write((&wire.Close{}).AppendFrame(nil))
	for err == nil {
		_, err = c.next()
	}
	if errors.Is(err, errEnded) { // as it should
		err = nil
	}
	return errors.Join(err, c.Close())
}

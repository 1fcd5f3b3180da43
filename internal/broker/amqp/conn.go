package amqp

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/gate"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

const (
	// ourMaxFrame is the size of the largest frame that we take.
	ourMaxFrame = 128 << 10
	readBuffer  = 64 << 10
	// maxBacklog is how much may wait to be written before nothing more is read.
	maxBacklog = 1 << 20
)

// conn is one connection.
type conn struct {
	srv     *Server
	nc      net.Conn
	account *store.Account

	// The reader's.
	frames    *wire.FrameReader
	begun     bool // protocol headers were exchanged
	greeted   bool // the peer has sent its open, and we ours
	container string
	exclusive bool // the container's name is on the server's list
	sessions  []*session
	topUps    []*inLink // want credit
	pending   receipts
	txns      map[string]*txn
	txnCount  uint64
	lastRead  time.Time
	slab      []byte
	nodes     []node

	// Set by the reader before the first link is attached.
	maxFrame int // the peer's

	stopped  atomic.Bool
	written  chan struct{} // one token: the writer has taken all output
	wake     chan struct{} // one token: there is something to write
	finished chan struct{} // closed when the writer has ended

	readyMu sync.Mutex
	ready   []*outLink // may have something to send
	rooms   []*inLink  // their destinations have room again
	roomy   atomic.Bool

	mu      sync.Mutex // the fields below, and the outgoing parts of sessions and links
	out     []byte
	closing bool // the writer ends when all is written
	beat    time.Duration

	// The writer's.
	spare []byte
	batch [takeBatch]store.Delivery
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{
		srv: s, nc: nc, account: s.store.NewAccount(), maxFrame: wire.MinMaxFrameSize,
		written: make(chan struct{}, 1), wake: make(chan struct{}, 1), finished: make(chan struct{}),
		txns: map[string]*txn{},
	}
	c.frames = wire.NewFrameReader(bufio.NewReaderSize(input{c}, readBuffer), ourMaxFrame)
	return c
}

// stop ends the connection; it may be called by any goroutine.
func (c *conn) stop() {
	c.stopped.Store(true)
	now := time.Now()
	_ = c.nc.SetWriteDeadline(now.Add(farewell)) // it fails only on a connection that is closed already
	_ = c.nc.SetReadDeadline(now)
}

func (c *conn) serve() error {
	go c.write()
	err := c.read()
	// A connection that the broker ends may have unsettled messages that its client has seen. Another client can get
	// them while the broker stops, and has to learn that.
	c.leave(errors.Is(err, errClosed))
	c.part(err)
	<-c.finished
	_ = c.nc.Close() // nothing is to be written any more
	return err
}

// read handles frames until the connection ends, and always returns why.
func (c *conn) read() error {
	c.lastRead = time.Now()
	if err := c.handshake(); err != nil {
		return err
	}
	for {
		f, err := c.frame()
		if err != nil {
			return err
		}
		if f.Type != wire.FrameAMQP {
			return fail(wire.CondFraming, "a frame of type %d", f.Type)
		}
		if len(f.Body) == 0 {
			continue // a heartbeat
		}
		if err := c.handle(f.Channel, f.Body); err != nil {
			return err
		}
	}
}

// part says goodbye, and lets the writer end.
func (c *conn) part(err error) {
	var f *failure
	switch {
	case errors.As(err, &f):
	case errors.Is(err, errStopped):
		f = fail(wire.CondForced, "the broker ends all connections")
	case errors.Is(err, errClosed), errors.Is(err, errHandshake):
	default:
		_ = c.nc.Close() // it broke; the writer must not wait for it
	}
	c.mu.Lock()
	if c.begun && (f != nil || errors.Is(err, errClosed)) {
		if !c.greeted {
			c.out = c.appendOpen(c.out, nil)
		}
		c.out = (&wire.Close{Error: f}).AppendFrame(c.out)
	}
	c.closing = true
	c.mu.Unlock()
	_ = c.nc.SetWriteDeadline(time.Now().Add(farewell)) // it fails only on a connection that is closed
	c.poke()
	<-c.finished
	if f != nil || errors.Is(err, errHandshake) {
		gate.Linger(c.nc, farewell/2)
	}
}

// leave ends all that the connection had.
func (c *conn) leave(orderly bool) {
	for _, s := range c.sessions {
		if s != nil {
			c.endLinks(s, !orderly)
		}
	}
	for _, t := range c.txns {
		t.rollback(c)
	}
	clear(c.txns)
	c.account.End()
	if c.exclusive {
		c.srv.mu.Lock()
		delete(c.srv.containers, c.container)
		c.srv.mu.Unlock()
	}
}

// frame returns the next frame, valid until the next call.
func (c *conn) frame() (wire.Frame, error) {
	f, err := c.frames.Next()
	var tooLarge *wire.FrameTooLargeError
	var malformed *wire.FrameError
	if errors.As(err, &tooLarge) || errors.As(err, &malformed) {
		return f, fail(wire.CondFraming, "%v", err)
	}
	return f, err
}

// input is the reader of frames.
type input struct{ c *conn }

// Read reads once. Before it may have to wait, it hands over the answers to the frames so far.
func (in input) Read(b []byte) (int, error) {
	c := in.c
	c.flush()
	if err := c.waitForWriter(); err != nil {
		return 0, err
	}
	for {
		if err := c.nc.SetReadDeadline(c.deadline()); err != nil {
			return 0, fmt.Errorf("set a deadline: %w", err)
		}
		if c.stopped.Load() {
			return 0, errStopped
		}
		if c.roomy.CompareAndSwap(true, false) {
			c.grantRooms()
			continue
		}
		n, err := c.nc.Read(b)
		if n > 0 {
			c.lastRead = time.Now()
			return n, nil
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			if d := c.deadline(); !d.IsZero() && !time.Now().Before(d) {
				return 0, fail(wire.CondResourceLimit, "nothing was heard for %v", time.Since(c.lastRead).Round(time.Millisecond))
			}
			continue // woken: stopped, or there is room
		}
		return 0, fmt.Errorf("read: %w", err)
	}
}

// deadline is when the peer was silent for too long.
func (c *conn) deadline() time.Time {
	switch idle := c.srv.opts.IdleTimeout; {
	case !c.greeted:
		return c.lastRead.Add(handshakeTimeout)
	case idle > 0:
		return c.lastRead.Add(idle)
	}
	return time.Time{}
}

// waitForWriter waits while too much is still to be written: a peer that does not read is not read from. One that
// does not read for as long as it may be silent is ended.
func (c *conn) waitForWriter() error {
	var late <-chan time.Time
	for {
		c.mu.Lock()
		behind := len(c.out) > maxBacklog
		c.mu.Unlock()
		if !behind {
			return nil
		}
		if idle := c.srv.opts.IdleTimeout; late == nil && idle > 0 {
			timer := time.NewTimer(idle)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-c.written:
		case <-late:
			return fail(wire.CondResourceLimit, "answers were not read")
		case <-c.finished:
			return errors.New("write: the connection broke")
		}
	}
}

// awaitStall waits for the end of a stall of the broker: clients begin a session to learn whether it stands still.
func (c *conn) awaitStall() error {
	over := c.srv.store.Stalled()
	if over == nil {
		return nil
	}
	c.flush()
	select {
	case <-over:
		return nil
	case <-c.finished:
		return errors.New("write: the connection broke")
	}
}

// poke tells the writer that there is something to write.
func (c *conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// send hands a frame that f appends to the writer.
func (c *conn) send(f func(b []byte) []byte) {
	c.mu.Lock()
	c.out = f(c.out)
	c.mu.Unlock()
	c.poke()
}

// flush hands over receipts and credit.
func (c *conn) flush() {
	c.sendReceipts()
	for _, l := range c.topUps {
		l.queued = false
		l.grant()
	}
	clear(c.topUps)
	c.topUps = c.topUps[:0]
}

// grantRooms gives credit to the links whose destinations have room again.
func (c *conn) grantRooms() {
	c.readyMu.Lock()
	links := c.rooms
	c.rooms = nil
	c.readyMu.Unlock()
	for _, l := range links {
		l.waiting = false
		l.grant()
	}
}

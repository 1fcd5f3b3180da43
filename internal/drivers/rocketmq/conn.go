package rocketmq

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// outLimit is how many bytes may wait to be written before senders wait.
	outLimit = 1 << 20
	// outMost is how many bytes may wait of those who do not wait: pulls, offsets, ends of transactions, for the most part. A
	// broker that asks but does not read would let them grow for ever.
	outMost = 32 << 20
	// keptBuffer is the largest buffer that is kept for the next frame.
	keptBuffer = 1 << 20
	// sweepEvery is how often overdue calls are looked for.
	sweepEvery = 100 * time.Millisecond
)

var (
	errNoAnswer  = errors.New("no answer in time")
	errAbandoned = errors.New("the broker had not answered when the producer closed")
)

// answerer takes what becomes of a request; arg is what the request was sent with. It is called once, by the connection's
// reading goroutine or by whoever found that no answer will come, and must not block.
type answerer interface {
	answer(arg uint32, r *reply)
}

// conn is a connection to a broker or name server on which any number of requests can be under way. Requests are
// gathered into a buffer that one goroutine writes: a lone one goes out at once, a burst as few large writes.
type conn struct {
	addr     string
	net      net.Conn
	maxFrame int              // the largest frame to take, in bytes
	raw      *transport.Metered // below TLS
	idle     *driver.Meter    // of the writer: it has nothing to write
	// serve handles requests of the broker; it must not block.
	serve func(c *conn, r *reply)
	begin time.Time
	wake  chan struct{}
	dead  chan struct{}
	wg    sync.WaitGroup
	// version is what the last answer to a caller said of the server, see reply.version.
	version atomic.Int32

	mu      sync.Mutex
	err     error // why it ended
	out     []byte
	spare   []byte
	room    chan struct{} // closed at the next write if somebody waits for it, else nil
	empty   chan struct{} // closed when all was written if somebody waits for it, else nil
	writing bool
	calls   []call // by opaque modulo its length, a power of two
	live    int
	opaque  uint32
	// Requests without an answer end when they are written; these wait, and those are being written.
	waiting, leaving []oneWay
}

// call is a request that waits for its answer.
type call struct {
	to     answerer // nil: free
	arg    uint32
	opaque uint32
	limit  time.Duration
	seen   time.Duration // when a sweep saw it first, since the connection was made; 0: not yet
}

type oneWay struct {
	to  answerer
	arg uint32
}

// newConn returns a connection that takes messages with bodies of up to maxBody bytes. raw is what is below TLS.
func newConn(addr string, nc net.Conn, raw *transport.Metered, maxBody int, serve func(*conn, *reply)) *conn {
	c := &conn{
		addr: addr, net: nc, maxFrame: maxBody + headRoom, raw: raw, idle: driver.NewMeter(), serve: serve, begin: time.Now(),
		wake: make(chan struct{}, 1), dead: make(chan struct{}),
		calls: make([]call, 64),
	}
	c.wg.Go(c.read)
	c.wg.Go(c.write)
	return c
}

// patience is how a sender waits while too much is waiting to be written: until ctx ends, or not at all if that is nil. The
// wait is measured by meter if there is one.
type patience struct {
	ctx   context.Context //nolint:containedctx // lives within one call
	meter *driver.Meter
}

// submit sends a frame, whose opaque it fills in, and its body. The answer, or none within the limit, goes to the
// answerer. When it returns an error nothing was sent and the answerer is not called.
func (c *conn) submit(p patience, head, body []byte, limit time.Duration, to answerer, arg uint32) error {
	if err := c.lockForOut(p); err != nil {
		return err
	}
	if 2*c.live >= len(c.calls) {
		c.grow()
	}
	mask := uint32(len(c.calls) - 1)
	for c.calls[c.opaque&mask].to != nil {
		c.opaque++
	}
	c.calls[c.opaque&mask] = call{to: to, arg: arg, opaque: c.opaque, limit: limit}
	c.live++
	binary.BigEndian.PutUint32(head[opaqueAt:], c.opaque)
	c.opaque++
	c.out = append(append(c.out, head...), body...)
	c.mu.Unlock()
	c.wakeWriter()
	return nil
}

// submitOneWay sends a frame that is not answered; to, if not nil, is told when it was written.
func (c *conn) submitOneWay(p patience, head, body []byte, to answerer, arg uint32) error {
	if err := c.lockForOut(p); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(head[opaqueAt:], c.opaque)
	c.opaque++
	c.out = append(append(c.out, head...), body...)
	if to != nil {
		c.waiting = append(c.waiting, oneWay{to, arg})
	}
	c.mu.Unlock()
	c.wakeWriter()
	return nil
}

// lockForOut returns with c.mu held when there is room, or with an error and without it.
func (c *conn) lockForOut(p patience) error {
	for {
		c.mu.Lock()
		if c.err != nil {
			defer c.mu.Unlock()
			return c.err
		}
		switch {
		case p.ctx == nil && len(c.out) >= outMost:
			c.mu.Unlock()
			c.fail(errUnread())
			return errUnread()
		case p.ctx == nil || len(c.out) < outLimit:
			return nil
		}
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()
		if err := p.wait(room, c.dead); err != nil {
			return err
		}
	}
}

// wait waits for one of the channels to be closed.
func (p patience) wait(room, dead <-chan struct{}) error {
	if p.meter != nil {
		p.meter.Begin()
		defer p.meter.End()
	}
	select {
	case <-room:
	case <-dead:
	case <-p.ctx.Done():
		return driver.Errorf(driver.ClassTimeout, "", "the broker does not read what we send: is it overloaded?",
			"the broker took nothing: %w", p.ctx.Err())
	}
	return nil
}

// waits is what the goroutines of the connection have waited.
func (c *conn) waits() driver.Waits {
	writer := driver.Idle{Known: true, Time: c.idle.Idle().Time + c.raw.Writing().Time}
	return driver.Waits{Reader: c.raw.Reading(), Writer: writer}
}

func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// grow doubles the table. Two opaques that differ modulo its length also do modulo twice that.
func (c *conn) grow() {
	calls := make([]call, 2*len(c.calls))
	for _, e := range c.calls {
		if e.to != nil {
			calls[e.opaque&uint32(len(calls)-1)] = e
		}
	}
	c.calls = calls
}

func (c *conn) write() {
	for {
		c.idle.Begin()
		select {
		case <-c.wake:
		case <-c.dead:
			return
		}
		c.idle.End()
		for c.writeOut() {
		}
	}
}

// writeOut writes what is waiting; it returns false when there is nothing.
func (c *conn) writeOut() bool {
	c.mu.Lock()
	if len(c.out) == 0 || c.err != nil {
		c.writing = false
		if c.empty != nil {
			close(c.empty)
			c.empty = nil
		}
		c.mu.Unlock()
		return false
	}
	c.writing = true
	b := c.out
	c.out, c.spare = c.spare[:0], nil
	c.waiting, c.leaving = c.leaving[:0], c.waiting
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
	c.mu.Unlock()

	_, err := c.net.Write(b)
	if err != nil {
		c.fail(lost(err))
		return false
	}
	if cap(b) > 2*outLimit {
		b = nil
	}
	c.mu.Lock()
	c.spare = b[:0]
	c.mu.Unlock()
	c.endLeaving(nil)
	return true
}

// endLeaving tells those whose requests were written how that went.
func (c *conn) endLeaving(err error) {
	r := reply{err: err}
	for {
		c.mu.Lock()
		n := len(c.leaving)
		if n == 0 {
			c.mu.Unlock()
			return
		}
		e := c.leaving[n-1]
		c.leaving = c.leaving[:n-1]
		c.mu.Unlock()
		e.to.answer(e.arg, &r)
	}
}

func (c *conn) read() {
	in := bufio.NewReaderSize(c.net, 64<<10)
	var size [4]byte
	var frame []byte
	var r reply
	proven := false // it has sent a frame as it should be
	for {
		if _, err := io.ReadFull(in, size[:]); err != nil {
			c.fail(lost(err))
			return
		}
		n := binary.BigEndian.Uint32(size[:])
		if n < minFrame || n > uint32(c.maxFrame) { //nolint:gosec // above zero
			c.fail(errLength(n, c.maxFrame, proven))
			return
		}
		if cap(frame) == 0 || cap(frame) > keptBuffer && n <= keptBuffer {
			frame = make([]byte, 16<<10)
		}
		var err error
		if frame, err = transport.ReadBody(in, frame, int(n)); err != nil {
			c.fail(lost(err))
			return
		}
		if err := r.parse(frame); err != nil {
			hint := notRocketMQ
			if proven {
				hint = lookAtBroker
			}
			c.fail(driver.Errorf(driver.ClassProtocol, "", hint, "%w", err))
			return
		}
		c.handle(&r)
		proven = true
	}
}

func (c *conn) handle(r *reply) {
	r.from = c
	if r.flag&flagResponse == 0 {
		if c.serve != nil {
			c.serve(c, r)
		}
		return
	}
	c.mu.Lock()
	e := c.calls[r.opaque&uint32(len(c.calls)-1)]
	if e.to == nil || e.opaque != r.opaque { // the answer came too late
		c.mu.Unlock()
		return
	}
	c.remove(e.opaque)
	c.mu.Unlock()
	e.to.answer(e.arg, r)
}

func (c *conn) remove(opaque uint32) {
	c.calls[opaque&uint32(len(c.calls)-1)] = call{}
	c.live--
}

// flush waits until all that was submitted is written, or ctx ends.
func (c *conn) flush(ctx context.Context) {
	c.mu.Lock()
	if c.err != nil || len(c.out) == 0 && !c.writing {
		c.mu.Unlock()
		return
	}
	if c.empty == nil {
		c.empty = make(chan struct{})
	}
	empty := c.empty
	c.mu.Unlock()
	c.wakeWriter()
	select {
	case <-empty:
	case <-c.dead:
	case <-ctx.Done():
	}
}

// failure returns why the connection ended, nil if it has not.
func (c *conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *conn) isDead() bool { return c.failure() != nil }

// errUnread is for a broker that does not read what we send.
func errUnread() error {
	return driver.Errorf(driver.ClassConnectionLost, "", "is the broker overloaded? See its log",
		"the broker does not read what we send: more than %d bytes are waiting", outMost)
}

// lost is the error of a connection that ended by itself.
func lost(err error) error {
	return driver.Errorf(driver.ClassConnectionLost, "", "look at the broker's log: it, or the network, ended the connection",
		"the connection ended: %w", err)
}

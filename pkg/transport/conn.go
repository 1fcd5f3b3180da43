package transport

import (
	"cmp"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// closeTimeout bounds the wait for the peer's answer to the end of a connection.
const closeTimeout = time.Second

// Conn is a connection of a driver: both directions, its end, and signs of life. One goroutine reads it, its users
// write.
type Conn struct {
	Net       net.Conn
	Raw       *Metered // below TLS; the same as Net without TLS
	In        *Input
	Out       *Output
	Heard     atomic.Uint32 // the reader changes it with signs of life of the peer
	WasShared atomic.Bool   // the connection has had more than one user at a time
	host      Endpoint
	pulse     pulse
	running   sync.WaitGroup
	cause     atomic.Pointer[error] // of the end
	over      chan struct{}
	ended     Notice // of its end
}

// NewConn returns a connection over conn, which is raw or TLS on top of it.
func NewConn(host Endpoint, conn net.Conn, raw *Metered, mem *Buffers) *Conn {
	c := &Conn{Net: conn, Raw: raw, In: NewInput(conn, raw, mem), host: host, over: make(chan struct{})}
	c.Out = NewOutput(conn, raw, mem, c.Fail)
	return c
}

// Host implements [driver.Located].
func (c *Conn) Host() string { return c.host.String() }

// Fail ends the connection. Only the first cause counts. It is safe for concurrent use.
func (c *Conn) Fail(cause error) {
	if c.cause.CompareAndSwap(nil, &cause) {
		close(c.over)
		c.Out.Fail(cause)
		_ = c.Raw.Close() // not TLS, which would first send a close alert to a peer that may not read
		c.ended.End(cause)
	}
}

// OnEnd implements [driver.Watched].
func (c *Conn) OnEnd(call func(why error)) { c.ended.OnEnd(call) }

// Over is closed when the connection has ended: Why returns the cause.
func (c *Conn) Over() <-chan struct{} { return c.over }

// Why returns the cause; nil if the connection has not ended.
func (c *Conn) Why() error {
	if cause := c.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Dead implements [Shared].
func (c *Conn) Dead() bool { return c.cause.Load() != nil }

// Shake opens the connection by the handshake of its protocol; when ctx ends first, or shake fails, it closes the
// connection.
func (c *Conn) Shake(ctx context.Context, shake func() error) error {
	// A deadline on the connection would not cover a cancelled ctx: closing covers both.
	stop := context.AfterFunc(ctx, func() { _ = c.Raw.Close() })
	err := shake()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Raw.Close()
		c.In.Release()
		if ctx.Err() != nil {
			err = ctx.Err() // the reason for closing
		}
	}
	return err
}

// Start starts the reader, and then signs of life: the peer wants one each owed, and the connection ends when it gives
// none for patience, by the named setting; zero for none. idle is called when all that has come is processed.
func (c *Conn) Start(idle, read func(), owed, patience time.Duration, beat func([]byte) []byte, setting string) {
	c.In.Idle = idle
	c.running.Go(func() {
		read()
		c.In.Release()
	})
	p := &c.pulse
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owed, p.patience, p.beat, p.setting = owed, patience, beat, setting
	// Four checks in the shorter of the two times.
	if shorter := min(cmp.Or(owed, patience), cmp.Or(patience, owed)); shorter > 0 {
		p.every = max(shorter/4, time.Millisecond)
		p.wrote, p.waited = time.Now(), c.Raw.Reading().Time
		p.timer = time.AfterFunc(p.every, c.checkPulse)
	}
}

// Put sends small frames, without waiting for room. It fails only when the connection has ended, or ends with it: the
// peer sends, but does not read.
func (c *Conn) Put(frames func([]byte) []byte) error {
	err := c.Gather(frames)
	if err == nil {
		c.Out.Flush()
	}
	return err
}

// Gather is Put for frames that leave with the next flush.
func (c *Conn) Gather(frames func([]byte) []byte) error {
	err := c.Out.Put(frames)
	if err != nil {
		c.Fail(err)
	}
	return err
}

// Leave ends the connection by bye, which takes leave of the peer within a bound, and waits until nothing is left.
func (c *Conn) Leave(ctx context.Context, bye func(context.Context)) {
	if !c.Dead() && ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, closeTimeout)
		bye(bounded)
		cancel()
	}
	c.Fail(ErrClosed)
	c.pulse.stop()
	c.running.Wait()
	c.Out.Wait()
}

// pulse keeps an idle connection alive with heartbeats, and ends a connection with a silent peer. It has a timer and no
// goroutine.
type pulse struct {
	owed     time.Duration // heartbeat interval that the peer requires; 0 for none
	patience time.Duration // silence of the peer after which the connection ends; 0 for no limit
	beat     func([]byte) []byte
	setting  string // that ends a silent connection

	mu    sync.Mutex
	timer *time.Timer // nil: not started, or stopped
	every time.Duration
	// As of the last check.
	writes, heard  uint32
	wrote          time.Time
	waited, silent time.Duration // by the reader, for bytes
}

// stop ends the checks, and returns when they have ended.
func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// checkPulse sends a heartbeat, or ends the connection, if that is due.
func (c *Conn) checkPulse() {
	p := &c.pulse
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil || c.Dead() {
		return
	}
	now := time.Now()
	if n := c.Out.Writes(); n != p.writes {
		p.writes, p.wrote = n, now
	} else if p.owed > 0 && now.Sub(p.wrote) >= p.owed/2 {
		_ = c.Put(p.beat)
	}
	// A reader that delivers does not read, and a stopped process stops the reader, too: only time that the reader has
	// waited counts as silence, and a late check counts no more of it than a timely one.
	waited := c.Raw.Reading().Time
	p.silent += min(waited-p.waited, 2*p.every)
	p.waited = waited
	if n := c.Heard.Load(); n != p.heard {
		p.heard, p.silent = n, 0
	} else if p.patience > 0 && p.silent >= p.patience {
		c.Fail(driver.Errorf(driver.ClassConnectionLost, "", "is the broker paused or the network down? See "+p.setting,
			"nothing was heard from the broker for %s", p.patience))
	}
	p.timer.Reset(p.every)
}

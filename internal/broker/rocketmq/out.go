package rocketmq

import (
	"errors"
	"io"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// handOver gives the writer the gathered frames, and waits while it has too many.
func (c *conn) handOver() error {
	if len(c.w.B) == 0 && len(c.pulls) == 0 {
		return nil
	}
	c.mu.Lock()
	if len(c.pulls) == 0 && len(c.w.B) <= fewBytes && !c.writing && len(c.out) == 0 {
		c.writing = true
		c.mu.Unlock()
		return c.writeFew()
	}
	c.out = append(c.out, c.w.B...)
	c.w.B = c.w.B[:0]
	c.waiting = append(c.waiting, c.pulls...)
	c.pulls = c.pulls[:0]
	var drained chan struct{}
	if len(c.out) > outLimit {
		if c.drained == nil {
			c.drained = make(chan struct{})
		}
		drained = c.drained
	}
	c.mu.Unlock()
	c.wakeWriter()
	if drained == nil {
		return nil
	}
	select {
	case <-drained:
		return nil
	case <-c.done:
		return errClosed
	}
}

// put writes b. Who does not take it for as long as a client may be silent is gone, or might as well be. Only one
// goroutine writes at a time.
func (c *conn) put(b []byte) error {
	if now := time.Now(); now.Sub(c.limited) > idleTimeout/8 {
		c.limited = now
		_ = c.nc.SetWriteDeadline(now.Add(idleTimeout)) // it fails only when the connection was closed
	}
	_, err := c.nc.Write(b)
	return err
}

// writeFew writes the frames that the reader has gathered, so that a lone answer need not wait for another goroutine to
// wake up.
func (c *conn) writeFew() error {
	err := c.put(c.w.B)
	c.w.B = c.w.B[:0]
	c.mu.Lock()
	c.writing = false
	more := len(c.out) > 0 || len(c.waiting) > 0 || len(c.left) > 0
	c.mu.Unlock()
	if more { // the writer may have come and gone meanwhile
		c.wakeWriter()
	}
	return err
}

// push sends a frame of our own.
func (c *conn) push(build func(w *wire.Writer)) {
	c.mu.Lock()
	w := wire.Writer{B: c.out}
	if !c.dead && len(c.out) < outLimit { // a client that does not read is not told
		build(&w)
	}
	c.out = w.B
	c.mu.Unlock()
	c.wakeWriter()
}

// ready makes a pull one to be answered. The goroutine that stored a message calls it.
func (c *conn) ready(p *pull) {
	c.mu.Lock()
	if !c.dead {
		c.waiting = append(c.waiting, p)
	}
	c.mu.Unlock()
	c.wakeWriter()
}

// awaitRoom does not return before the destination has room. Over a connection of consumers the acknowledgements that
// make room come behind the messages sent: there it only slows the reader down, and the destination holds somewhat more
// than its limit.
func (c *conn) awaitRoom(d *store.Destination) error {
	if err := c.handOver(); err != nil {
		return err
	}
	var enough <-chan time.Time
	if c.consumes {
		enough = time.After(slowDown)
	}
	err := c.gate.Await(d, enough)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// answer hands frames to the writer.
func (c *conn) answer(frames []byte) {
	c.mu.Lock()
	if !c.dead {
		c.out = append(c.out, frames...)
	}
	c.mu.Unlock()
	c.wakeWriter()
}

// leave takes the connection out of everything when its goroutines have ended.
func (c *conn) leave() {
	c.mu.Lock()
	c.dead = true
	c.out, c.waiting = nil, nil
	c.mu.Unlock()
	// A full topic may know the connection for a while longer, to tell it of room.
	c.req, c.w, c.written = wire.Frame{}, wire.Writer{}, wire.Writer{}
	c.batch, c.topic, c.pulls, c.serving = nil, nil, nil, nil
	for p := range c.held {
		p.timer.Stop()
		p.q.forget(p)
	}
	c.s.held.Add(-int64(len(c.held)))
	c.held = nil
	c.leaveAll()
	c.account.End()
}

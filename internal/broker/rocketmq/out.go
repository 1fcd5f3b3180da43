package rocketmq

import (
	"net"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// flush hands the gathered frames to the writer, and waits while the unwritten output exceeds maxOut.
func (c *conn) flush() error {
	if len(c.w.B) == 0 && len(c.pulls) == 0 {
		return nil
	}
	c.mu.Lock()
	c.out = append(c.out, c.w.B...)
	c.w.B = c.w.B[:0]
	c.waiting = append(c.waiting, c.pulls...)
	c.pulls = c.pulls[:0]
	behind := len(c.out) > maxOut
	c.mu.Unlock()
	c.wakeWriter()
	for behind {
		select {
		case <-c.drained:
		case <-c.done:
			return net.ErrClosed
		}
		c.mu.Lock()
		behind = len(c.out) > maxOut
		c.mu.Unlock()
	}
	return nil
}

// push sends a frame of our own.
func (c *conn) push(build func(w *wire.Writer)) {
	c.forWriter(func() {
		w := wire.Writer{B: c.out}
		if len(c.out) < maxOut { // dropped for a client that does not read
			build(&w)
		}
		c.out = w.B
	})
}

// forWriter changes the output under the lock, unless the connection has ended, and wakes the writer.
func (c *conn) forWriter(change func()) {
	c.mu.Lock()
	if !c.dead {
		change()
	}
	c.mu.Unlock()
	c.wakeWriter()
}

// ready puts a pull on the writer's list. The goroutine that stores a message calls it.
func (c *conn) ready(p *pull) { c.forWriter(func() { c.waiting = append(c.waiting, p) }) }

// awaitRoom waits for room at the destination. It only slows down a connection with consumers, as commits behind the
// sent messages make room: the destination then exceeds its limit.
func (c *conn) awaitRoom(d *store.Destination) error {
	if err := c.flush(); err != nil {
		return err
	}
	var timeout <-chan time.Time
	if c.consumes {
		timeout = time.After(slowDown)
	}
	return c.gate.Await(d, timeout)
}

// answer hands frames to the writer.
func (c *conn) answer(frames []byte) { c.forWriter(func() { c.out = append(c.out, frames...) }) }

// release ends the pulls, memberships and reservations of the connection, after its goroutines have ended.
func (c *conn) release() {
	c.mu.Lock()
	c.dead = true
	c.out, c.waiting = nil, nil
	c.mu.Unlock()
	// A full topic may refer to the connection for a while, as a waiter for room.
	c.req, c.w, c.written = wire.Frame{}, wire.Writer{}, wire.Writer{}
	c.batch, c.topic, c.pulls, c.serving = nil, nil, nil, nil
	for p := range c.held {
		p.timer.Stop()
		p.q.forget(p)
	}
	c.s.held.Add(-int64(len(c.held)))
	c.held = nil
	for m := range c.members {
		c.leaveGroup(m)
	}
	for name := range c.producerGroups {
		c.removeProducer(name)
	}
	c.account.End()
}

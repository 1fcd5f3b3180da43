package rocketmq

import (
	"errors"
	"io"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// awaitRoom does not return before the destination has room. Over a connection of consumers the acknowledgements that
// make room come behind the messages sent: there it only slows the reader down, and the destination holds somewhat more
// than its limit.
func (c *conn) awaitRoom(d *store.Destination) error {
	if err := c.handOver(); err != nil {
		return err
	}
	var enough <-chan time.Time
	if len(c.joined) > 0 {
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
	c.timer.Stop()
	c.mu.Lock()
	c.dead = true
	c.out, c.spare, c.waiting, c.free = nil, nil, nil, nil
	c.mu.Unlock()
	// A full topic may know the connection for a while longer, to tell it of room.
	c.req, c.w, c.out2, c.batch, c.topic, c.pulls, c.serving = wire.Frame{}, writer{}, writer{}, nil, nil, nil, nil
	for _, p := range c.held {
		p.q.forget(p)
	}
	c.s.held.Add(-int64(len(c.held)))
	c.held = nil
	c.s.disconnect(c)
	c.account.End()
}

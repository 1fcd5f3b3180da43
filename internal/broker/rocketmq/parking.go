package rocketmq

import (
	"io"
	"time"

	"github.com/perfmq/perfmq/internal/broker/hangup"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// park withholds the answer that the reader appended last, which begins at start, until the destination has room.
func (c *conn) park(d *store.Destination, start int) error {
	c.mu.Lock()
	old, waits := c.parked[d]
	c.parked[d] = append(old, c.w.B[start:]...)
	c.parkedN += len(c.w.B) - start
	tooMuch := c.parkedN > parkedLimit
	c.mu.Unlock()
	c.w.B = c.w.B[:start]
	if !waits {
		c.unpark(d)
	}
	if tooMuch {
		return c.awaitRoom(d)
	}
	return nil
}

// unpark sends the withheld answers if there is room, and else when there is.
func (c *conn) unpark(d *store.Destination) {
	select {
	case <-c.done: // the client is gone
		return
	default:
	}
	if !d.Room(func() { c.unpark(d) }) {
		return
	}
	c.mu.Lock()
	c.parkedN -= len(c.parked[d])
	if !c.dead {
		c.out = append(c.out, c.parked[d]...)
	}
	delete(c.parked, d)
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
	if len(c.joined) > 0 {
		enough = time.After(slowDown)
	}
	look := time.NewTicker(hangup.Every)
	defer look.Stop()
	room := make(chan struct{}, 1)
	ask := func() {
		select {
		case room <- struct{}{}:
		default:
		}
	}
	for !d.Room(ask) {
		for told := false; !told; {
			select {
			case <-room:
				told = true
			case <-look.C:
				if hangup.Seen(c.nc) {
					return io.EOF
				}
			case <-enough:
				return nil
			case <-c.done:
				return errClosed
			}
		}
	}
	return nil
}

// leave takes the connection out of everything when its goroutines have ended.
func (c *conn) leave() {
	c.timer.Stop()
	c.mu.Lock()
	c.dead = true
	c.out, c.spare, c.waiting, c.parked, c.free = nil, nil, nil, nil, nil
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

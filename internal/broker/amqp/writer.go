package amqp

import (
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

const (
	// writeBatch is the output, in bytes, gathered for one write.
	writeBatch = 64 << 10
	// keepBuffer is the largest buffer kept for the next write.
	keepBuffer = 256 << 10
)

// write is the writer's loop: it writes the output, deliveries and heartbeats.
func (c *conn) write() {
	defer close(c.finished)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		buf, heartbeat, closing := c.gather()
		if len(buf) > 0 {
			if _, err := c.nc.Write(buf); err != nil {
				_ = c.nc.Close() // so that the reader ends as well
				return
			}
		}
		if cap(buf) <= keepBuffer {
			c.spare = buf[:0]
		}
		if len(buf) > 0 {
			continue
		}
		if closing {
			return
		}
		if heartbeat > 0 {
			timer.Reset(heartbeat)
		}
		select {
		case <-c.wake:
		case <-timer.C:
			if heartbeat > 0 {
				c.send(wire.AppendHeartbeat)
			}
		}
	}
}

// gather returns the next bytes to write.
func (c *conn) gather() (buf []byte, heartbeat time.Duration, closing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	buf = c.out
	c.out, c.spare = c.spare[:0], nil
	store.Signal(c.written)
	if !c.closing {
		for len(buf) < writeBatch {
			l := c.nextReady()
			if l == nil {
				break
			}
			buf = l.serve(buf)
		}
	}
	return buf, c.heartbeat, c.closing
}

// nextReady removes the first link from the writer's list.
func (c *conn) nextReady() *outLink {
	c.readyMu.Lock()
	defer c.readyMu.Unlock()
	if len(c.ready) == 0 {
		return nil
	}
	l := c.ready[0]
	copy(c.ready, c.ready[1:])
	c.ready[len(c.ready)-1] = nil
	c.ready = c.ready[:len(c.ready)-1]
	l.queued = false
	return l
}

// makeReady puts a link on the writer's list; any goroutine may call it.
func (c *conn) makeReady(l *outLink) {
	c.readyMu.Lock()
	if !l.queued {
		l.queued = true
		c.ready = append(c.ready, l)
	}
	c.readyMu.Unlock()
	c.wakeWriter()
}

// onRoom puts a link on the reader's list of links with room, and wakes the reader.
func (c *conn) onRoom(l *inLink) {
	c.readyMu.Lock()
	c.withRoom = append(c.withRoom, l)
	c.readyMu.Unlock()
	c.anyRoom.Store(true)
	_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
}

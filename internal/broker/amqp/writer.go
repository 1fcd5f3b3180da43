package amqp

import (
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

const (
	// writeBatch is how many bytes are gathered before they are written.
	writeBatch = 64 << 10
	// keepBuffer is the largest buffer that is kept for the next write.
	keepBuffer = 256 << 10
)

// write is the writer: it writes the output, sends the messages of links, and heartbeats in between.
func (c *conn) write() {
	defer close(c.finished)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		buf, beat, closing := c.gather()
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
		if beat > 0 {
			timer.Reset(beat)
		}
		select {
		case <-c.wake:
		case <-timer.C:
			if beat > 0 {
				c.send(wire.AppendHeartbeat)
			}
		}
	}
}

// gather returns the bytes to be written next.
func (c *conn) gather() (buf []byte, beat time.Duration, closing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	buf = c.out
	c.out, c.spare = c.spare[:0], nil
	select {
	case c.written <- struct{}{}:
	default:
	}
	if !c.closing {
		for len(buf) < writeBatch {
			l := c.nextReady()
			if l == nil {
				break
			}
			buf = l.serve(buf)
		}
	}
	return buf, c.beat, c.closing
}

// nextReady takes the first link off the list.
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
	c.poke()
}

// tellRoom puts a link on the reader's list of those whose destinations have room, and wakes the reader.
func (c *conn) tellRoom(l *inLink) {
	c.readyMu.Lock()
	c.rooms = append(c.rooms, l)
	c.readyMu.Unlock()
	c.roomy.Store(true)
	_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // it fails only when the connection is closed
}

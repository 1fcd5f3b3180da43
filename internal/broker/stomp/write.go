package stomp

import (
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

const (
	// writeBatch is the output, in bytes, gathered for one write.
	writeBatch = 64 << 10
	// takeBatch is the number of messages taken from a subscription at once.
	takeBatch = 64
)

// serve delivers and writes until the connection ends.
func (c *conn) serve() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for c.collect(timer) {
		c.deliver()
		if len(c.buf) == 0 {
			continue
		}
		if _, err := c.net.Write(c.buf); err != nil {
			c.close()
			return
		}
		c.wrote = time.Now()
		if c.buf = c.buf[:0]; cap(c.buf) > keepBuffer {
			c.buf = nil
		}
	}
	if len(c.buf) > 0 {
		_, _ = c.net.Write(c.buf) // bounded by closeTimeout; the connection ends anyway
	}
}

// collect waits for work, or until a heart-beat is due, and takes it from the connection. It returns false at the end.
func (c *conn) collect(timer *time.Timer) bool {
	beat := false
	c.mu.Lock()
	for len(c.out) == 0 && len(c.ready) == 0 && len(c.active) == 0 && !beat && !c.closing {
		if c.beats > 0 && !c.wrote.IsZero() { // nothing comes before CONNECTED
			timer.Reset(time.Until(c.wrote.Add(c.beats)))
		}
		c.mu.Unlock()
		select {
		case <-c.wake:
		case <-timer.C:
			beat = true
		}
		c.mu.Lock()
		beat = beat && c.beats > 0
	}
	c.buf, c.out = c.out, c.buf[:0]
	if beat {
		c.buf = append(c.buf, '\n')
	}
	closing := c.closing
	for i, s := range c.ready {
		if c.ready[i] = nil; !s.active {
			s.active = true
			c.active = append(c.active, s)
		}
		s.ready.Store(false)
	}
	c.ready = c.ready[:0]
	c.mu.Unlock()
	store.Signal(c.drained)
	return !closing
}

// deliver takes messages of the subscriptions in turn, up to writeBatch.
func (c *conn) deliver() {
	for len(c.active) > 0 && len(c.buf) < writeBatch {
		s := c.active[0]
		if c.active = c.active[1:]; c.serveSubscription(s) {
			c.active = append(c.active, s)
		} else {
			s.active = false
		}
	}
	if len(c.active) == 0 {
		c.active = nil // frees the elements before it
	}
}

// serveSubscription appends messages of one subscription. It returns false if there are no more for now.
func (c *conn) serveSubscription(s *subscription) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	n := min(takeBatch, max(1, writeBatch/(s.size+1))) // large ones one by one
	// Only Take brings the subscription to its limit, where it waits for no notification: it takes all messages that it
	// was notified of, and has no need of [store.Consumer.Yield].
	taken := s.consumer.Take(c.batch[:n])
	if taken == 0 {
		return false
	}
	for i := range c.batch[:taken] {
		c.buf = s.append(c.buf, &c.batch[i])
	}
	last := c.batch[taken-1].ID
	s.size = len(c.batch[taken-1].Message.Content.Body())
	clear(c.batch[:taken])
	s.sent.Store(last + 1)
	if s.mode == modeAuto {
		s.consumer.SettleRange(0, last, store.Accepted)
	}
	return taken == n
}

// append appends a MESSAGE frame.
func (s *subscription) append(b []byte, d *store.Delivery) []byte {
	b = append(b, s.head...)
	if id := foreignID(d.Message); id != "" {
		b = wire.AppendEscaped(b, id)
	} else {
		b = strconv.AppendUint(append(b, s.name...), d.ID, 10)
	}
	if s.mode != modeAuto {
		b = strconv.AppendUint(append(append(b, "\nack:"...), s.name...), d.ID, 10)
	}
	if d.Attempts > 0 {
		b = append(b, "\nredelivered:true"...)
	}
	b = appendHead(append(b, '\n'), d.Message)
	b = append(append(b, '\n'), d.Message.Content.Body()...)
	return append(b, 0)
}

// foreignID returns the message ID that the client of another protocol has chosen, or an empty text.
func foreignID(m *store.Message) string {
	if _, ok := m.Content.(*message); ok {
		return ""
	}
	return m.Content.Addressing().MessageID
}

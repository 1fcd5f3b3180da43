package stomp

import (
	"strconv"

	"github.com/perfmq/perfmq/internal/broker/store"
)

const (
	// flushAt is how much is gathered for one write.
	flushAt = 64 << 10
	// takeAtOnce is how many messages a subscription delivers before it is another one's turn.
	takeAtOnce = 64
)

// writer is the state of the goroutine that writes.
type writer struct {
	conn   *conn
	buf    []byte
	active []*subscription // may have more to deliver
	batch  [takeAtOnce]store.Delivery
}

// serve delivers and writes until the connection ends.
func (c *conn) serve() {
	w := &writer{conn: c}
	for w.collect() {
		w.deliver()
		if len(w.buf) == 0 {
			continue
		}
		if _, err := c.net.Write(w.buf); err != nil {
			c.breakOff(err)
			return
		}
		c.wrote.Add(1)
		w.written()
	}
	if len(w.buf) > 0 {
		if _, err := c.net.Write(w.buf); err != nil { // bounded by the deadline that was set with closing
			c.breakOff(err)
		}
	}
}

// collect waits for something to do and takes it over. It returns false at the end.
func (w *writer) collect() bool {
	c := w.conn
	c.mu.Lock()
	for len(c.out) == 0 && len(c.ready) == 0 && len(w.active) == 0 && !c.beat && !c.closing {
		c.mu.Unlock()
		<-c.wake
		c.mu.Lock()
	}
	w.buf, c.out = c.out, w.buf[:0]
	if c.beat {
		c.beat = false
		w.buf = append(w.buf, '\n')
	}
	closing := c.closing
	for i, s := range c.ready {
		if c.ready[i] = nil; !s.serving {
			s.serving = true
			w.active = append(w.active, s)
		}
		s.listed.Store(false)
	}
	c.ready = c.ready[:0]
	c.mu.Unlock()
	select {
	case c.drained <- struct{}{}:
	default:
	}
	return !closing
}

// deliver takes messages, in turns, until there is enough to write or nothing to take.
func (w *writer) deliver() {
	for len(w.active) > 0 && len(w.buf) < flushAt {
		s := w.active[0]
		if w.active = w.active[1:]; w.serve(s) {
			w.active = append(w.active, s)
		} else {
			s.serving = false
		}
	}
	if len(w.active) == 0 {
		w.active = nil // the elements before it would be kept
	}
}

// serve appends messages of one subscription. It returns false if there is nothing more for now.
func (w *writer) serve(s *subscription) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	n := min(s.credit(), max(1, flushAt/(s.typical+1))) // large ones one by one
	if n == 0 {
		return false
	}
	// When it takes all that it may, the store will not tell it of more; and only what it takes lessens what it may
	// take. So it never keeps others from what it was told of, and has no need of [store.Consumer.Yield].
	taken := s.consumer.Take(w.batch[:n])
	if taken == 0 {
		return false
	}
	for i := range w.batch[:taken] {
		w.buf = s.append(w.buf, &w.batch[i])
	}
	last := w.batch[taken-1].ID
	s.typical = len(w.batch[taken-1].Message.Content.Body())
	clear(w.batch[:taken])
	s.sent.Store(last + 1)
	if s.mode != modeAuto {
		s.outstanding.Add(int64(taken))
	} else {
		s.consumer.AcceptThrough(last)
	}
	return taken == n
}

// credit returns how many messages may be taken now.
func (s *subscription) credit() int {
	if s.mode == modeAuto {
		return takeAtOnce
	}
	for {
		if free := s.limit - s.outstanding.Load(); free > 0 {
			return int(min(free, takeAtOnce))
		}
		s.starved.Store(true)
		if s.outstanding.Load() > s.limit*3/4 || !s.starved.CompareAndSwap(true, false) {
			return 0
		}
	}
}

// append appends a MESSAGE frame.
func (s *subscription) append(b []byte, d *store.Delivery) []byte {
	b = strconv.AppendUint(append(b, s.head...), d.ID, 10)
	if s.ack != nil {
		b = strconv.AppendUint(append(b, s.ack...), d.ID, 10)
	}
	if d.Attempts > 0 {
		b = append(b, "\nredelivered:true"...)
	}
	b = appendHead(append(b, '\n'), d.Message, s.version)
	b = append(append(b, '\n'), d.Message.Content.Body()...)
	return append(b, 0)
}

// written empties the buffer for the next frames.
func (w *writer) written() {
	if w.buf = w.buf[:0]; cap(w.buf) > largeBuffer {
		w.buf = nil
	}
}

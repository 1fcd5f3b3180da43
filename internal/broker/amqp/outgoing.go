package amqp

import (
	"encoding/binary"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// takeBatch is the number of messages taken from a queue at once.
const takeBatch = 64

// outLink is a link of a receiving peer. Fields not marked as the reader's are under the connection's lock, except for
// queued.
type outLink struct {
	s        *session
	handle   uint32
	queued   bool               // on the writer's list; under readyMu
	consumer *store.Consumer    // nil: a refused link
	sub      *store.Queue       // of a durable subscription; the reader's
	own      *store.Destination // the temporary one of the link; the reader's
	settled  bool               // deliveries are presettled
	detached bool               // by us; the reader's
	closed   bool

	count, limit uint32 // delivery-count, and delivery-count plus link-credit
	drain, echo  bool
	taken        []store.Delivery // from the queue, not sent yet
	waiting      bool             // the consumer will be notified
	rest         []byte           // of a partly sent message
}

// onFlow sets the link's credit; the lock is held.
func (l *outLink) onFlow(w *wire.Flow) {
	if w.LinkCredit.OK {
		l.limit = w.DeliveryCount.V + w.LinkCredit.V // an unset count is 0, our first one
		if l.limit-l.count > 1<<31 {                 // the peer has reduced the credit
			l.limit = l.count
		}
	}
	l.drain, l.echo = w.Drain, l.echo || w.Echo
}

// serve appends the link's messages as far as credit and window allow; the lock is held.
func (l *outLink) serve(b []byte) []byte {
	if l.closed || l.consumer == nil {
		return l.answerFlow(b)
	}
	s, c := l.s, l.s.c
	for len(b) < writeBatch && s.remoteWindow > 0 {
		if len(l.rest) > 0 {
			b = l.transfer(b, &wire.Transfer{Handle: l.handle, Settled: l.settled}, nil)
			continue
		}
		if len(l.taken) == 0 {
			n := min(l.limit-l.count, s.remoteWindow, takeBatch)
			if n == 0 {
				if l.waiting { // a drain has used up the credit since
					l.waiting = false
					l.consumer.Yield()
				}
				return l.answerFlow(b)
			}
			got := l.consumer.Take(c.batch[:n])
			l.waiting = got < int(n)
			l.taken = append(l.taken[:0], c.batch[:got]...)
			clear(c.batch[:got])
			if got == 0 {
				return l.answerFlow(b)
			}
		}
		d := l.taken[0]
		l.taken[0] = store.Delivery{}
		l.taken = l.taken[1:]
		b = l.deliver(b, &d)
	}
	if s.remoteWindow > 0 {
		c.makeReady(l)
	}
	return b
}

// answerFlow ends a drain and answers an echo, after all available messages.
func (l *outLink) answerFlow(b []byte) []byte {
	if l.closed || !l.drain && !l.echo || l.drain && l.s.remoteWindow == 0 && l.limit != l.count {
		return b
	}
	if l.drain {
		l.count = l.limit
	}
	state := l.s.state()
	state.Handle, state.Drain = wire.Some(l.handle), l.drain
	state.DeliveryCount, state.LinkCredit = wire.Some(l.count), wire.Some(l.limit-l.count)
	l.drain, l.echo = false, false
	return state.AppendFrame(b, l.s.channel)
}

// deliver appends the first frame of a message.
func (l *outLink) deliver(b []byte, d *store.Delivery) []byte {
	s := l.s
	place := s.unsettled.Next
	number := uint32(place) //nolint:gosec // serial
	s.unsettled.Add(delivered{l, d.ID})
	if l.settled {
		s.unsettled.Remove(place)
		l.consumer.Settle(d.ID, store.Accepted)
	}
	l.count++
	m := d.Message
	if own, ok := m.Content.(*message); ok {
		l.rest = own.bare
	} else {
		l.rest = encoded(m)
	}
	var tag [4]byte
	binary.BigEndian.PutUint32(tag[:], number)
	t := wire.Transfer{
		Handle: l.handle, DeliveryID: wire.Some(number), DeliveryTag: tag[:], MessageFormat: wire.Some[uint32](0),
		Settled: l.settled,
	}
	var header [64]byte
	return l.transfer(b, &t, l.header(header[:0], m, d.Attempts))
}

// transfer appends a frame with the header, for the first frame of a message, and as much of the rest as fits.
func (l *outLink) transfer(b []byte, t *wire.Transfer, header []byte) []byte {
	s := l.s
	frame := len(b)
	b = t.AppendHead(b, s.channel)
	more := len(b) - 1
	b = append(b, header...)
	fits := min(s.c.maxFrame-(len(b)-frame), len(l.rest))
	b = append(b, l.rest[:fits]...)
	if l.rest = l.rest[fits:]; len(l.rest) > 0 {
		b[more] = wire.CodeTrue
	}
	s.nextOutgoing++
	s.remoteWindow--
	wire.EndFrame(b, frame)
	return b
}

// header appends the header section (Messaging, section 3.2.1).
func (l *outLink) header(b []byte, m *store.Message, attempts uint32) []byte {
	h := wire.Header{
		Durable: m.Durable, Priority: wire.Some(m.Priority), FirstAcquirer: attempts == 0,
		DeliveryCount: attempts,
	}
	if m.Expires != 0 {
		left := min(max(m.Expires-time.Now().UnixMilli(), 1), 1<<32-1)
		h.TTL = wire.Some(uint32(left)) //nolint:gosec // bounded
	}
	return h.AppendSection(b)
}

// onDisposition handles the dispositions of receivers. Senders' dispositions need no answer: we keep no state of their
// deliveries.
func (s *session) onDisposition(f *wire.Decoder) error {
	var d wire.Disposition
	if err := d.Decode(f); err != nil {
		return failDecode(err)
	}
	o, err := wire.ParseState(d.State)
	if err != nil {
		return failDecode(err)
	}
	if d.Role != wire.RoleReceiver {
		return nil
	}
	c := s.c
	var t *txn
	if o.Transactional {
		if t = c.txns[string(o.TxnID)]; t == nil {
			return failTransaction()
		}
	}
	outcome := outcomeOf(&o)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.unsettled.EachSerial(d.First, d.Last, func(n uint64) {
		if !o.Terminal() && !d.Settled {
			return
		}
		one := s.unsettled.Remove(n)
		switch k := one.link.consumer; {
		case t == nil:
			k.Settle(one.id, outcome)
		case !t.Settle(k, one.id, one.id, outcome): // the commit will fail
			k.Settle(one.id, store.Failed)
		}
	})
	return nil
}

// outcomeOf returns the outcome of a delivery in a state; one without an outcome is released.
func outcomeOf(s *wire.State) store.Outcome {
	switch {
	case s.Kind == wire.DescAccepted:
		return store.Accepted
	case s.Kind == wire.DescRejected, s.Kind == wire.DescModified && s.UndeliverableHere:
		return store.Rejected
	case s.Kind == wire.DescModified && s.DeliveryFailed:
		return store.Failed
	}
	return store.Released
}

// end ends the link and returns its unsettled deliveries. failed is as in [store.Consumer.Close]; closing removes
// a durable subscription.
func (l *outLink) end(failed, closing bool) {
	c := l.s.c
	c.mu.Lock()
	l.closed = true
	l.s.forget(l)
	l.taken, l.rest = nil, nil
	c.mu.Unlock()
	if l.consumer != nil {
		l.consumer.Close(failed)
	}
	if closing && l.sub != nil {
		_ = l.sub.Remove() // of sharing links, the last one removes it
	}
	l.deleteOwn()
}

func (l *outLink) deleteOwn() {
	if l.own != nil {
		l.own.Delete()
	}
}

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
		// A client that does not read is not read either, and its connection ends.
		if now, idle := time.Now(), c.srv.IdleTimeout; now.Sub(c.extended) > idle/8 {
			c.extended = now
			_ = c.nc.SetWriteDeadline(now.Add(idle)) // fails only on a closed connection
		}
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

package rocketmq

import (
	"slices"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

const (
	// pullMessages and pullBytes bound the answer to a pull, whatever the client asks for.
	pullMessages = 4096
	pullBytes    = 1 << 20
	// scanned is how many messages a filter looks at before an answer tells the client how far it is.
	scanned = 1024
	// longestHold is how long a pull is held at most.
	longestHold = 5 * time.Minute
	writeSize   = 256 << 10
	// maxPulls is how many pulls a connection may have under way: one per queue of a great many topics.
	maxPulls = 1 << 16
)

// pull is a request for messages. The reader makes it; then it belongs to the writer, or to the queue where it waits.
type pull struct {
	c        *conn
	codec    wire.Codec
	opaque   uint32
	q        *queue
	g        *group
	offset   int64
	max      int
	filter   *filter
	deadline time.Time   // it is held until then if there are no messages; zero: it is not
	timer    *time.Timer // of its deadline; nil: it was never held
	passed   int         // messages that the filter left out since
}

// pull handles PULL_MESSAGE (PullMessageProcessor).
func (c *conn) pull(r *wire.Frame) error {
	q := c.queueOf(r)
	if q == nil {
		return nil
	}
	g := c.groupOf(r)
	if g == nil {
		return c.refuse(r, wire.ResSubscriptionNotExist, "the name of the consumer group is illegal")
	}
	flags := r.NumberOr("sysFlag", 0)
	f, code, remark := c.filterOf(r, g, q.t, flags&wire.PullSubscription != 0)
	if code != wire.ResSuccess {
		return c.refuse(r, code, remark)
	}
	if offset := r.NumberOr("commitOffset", -1); flags&wire.PullCommitOffset != 0 && offset >= 0 {
		q.t.commit(q, g.name, offset)
	}
	if c.livePulls.Add(1) > maxPulls {
		c.livePulls.Add(-1)
		return c.refuse(r, wire.ResSystemBusy, "too many pulls under way on one connection")
	}
	p := &pull{
		c: c, codec: r.Codec, opaque: r.Opaque, q: q, g: g, filter: f, offset: r.NumberOr("queueOffset", 0),
		max: int(min(max(r.NumberOr("maxMsgNums", 32), 1), pullMessages)),
	}
	if flags&wire.PullSuspend != 0 {
		hold := min(max(r.NumberOr("suspendTimeoutMillis", 0), 0), longestHold.Milliseconds())
		p.deadline = time.Now().Add(time.Duration(hold) * time.Millisecond)
	}
	c.pulls = append(c.pulls, p)
	return nil
}

// write writes answers, and answers pulls, until the connection ends.
func (c *conn) write() {
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		c.writeOut()
	}
}

// writeOut writes the waiting frames and answers the waiting pulls.
func (c *conn) writeOut() {
	if !c.awaitStall() {
		return
	}
	c.mu.Lock()
	if c.writing { // the reader is, and will wake us
		c.mu.Unlock()
		return
	}
	c.writing = true
	w := &c.written
	c.out, w.B = w.B[:0], c.out
	c.waiting, c.serving = c.serving[:0], c.waiting
	left := c.left
	c.left = nil
	if c.drained != nil {
		close(c.drained)
		c.drained = nil
	}
	c.mu.Unlock()
	for i, p := range c.serving {
		c.serving[i] = nil
		c.serve(w, p)
		if len(w.B) >= writeSize && !c.writeNow(w) {
			return
		}
	}
	if len(left) > 0 {
		c.letGo(w, left)
	}
	if len(w.B) > 0 && !c.writeNow(w) {
		return
	}
	if cap(w.B) > keptBuffer {
		w.B = nil
	}
	c.mu.Lock()
	c.writing = false
	c.mu.Unlock()
}

func (c *conn) writeNow(w *wire.Writer) bool {
	err := c.put(w.B)
	w.B = w.B[:0]
	if err != nil {
		c.close()
		return false
	}
	return true
}

// serve answers a pull that is not in its queue's list, or puts it there.
func (c *conn) serve(w *wire.Writer, p *pull) {
	if p.timer != nil {
		p.timer.Stop()
		delete(c.held, p)
		c.s.held.Add(-1)
	}
	if c.answerPull(w, p) {
		c.livePulls.Add(-1)
	}
}

// answerPull answers a pull; false if it is held instead.
func (c *conn) answerPull(w *wire.Writer, p *pull) bool {
	q := p.q
	if q.t.gone.Load() {
		w.Begin(p.codec, wire.ResTopicNotExist, wire.FlagAnswer, p.opaque, "topic["+q.t.name+"] was deleted")
		w.End(0)
		return true
	}
	size := p.max
	if p.filter != nil {
		size = max(size, scanned/4)
	}
	if len(c.batch) < size {
		c.batch = make([]entry, size)
	}
	for {
		var waiter *pull
		if time.Now().Before(p.deadline) {
			waiter = p
		}
		n, first, next := q.read(c.batch[:size], p.offset, waiter)
		switch {
		case n > 0:
			done := c.messages(w, p, c.batch[:n], first, next)
			clear(c.batch[:n])
			if done {
				return true
			}
		case p.offset != next:
			c.pullAnswer(w, p, wire.ResPullOffsetMoved, min(max(p.offset, first), next), first, next, 0)
			return true
		case waiter == nil:
			c.pullAnswer(w, p, wire.ResPullNotFound, p.offset, first, next, 0)
			return true
		default:
			c.hold(p)
			return false
		}
	}
}

// messages answers a pull with those of the batch that pass its filter; false if there are none and it is to go on
// looking.
func (c *conn) messages(w *wire.Writer, p *pull, batch []entry, first, next int64) bool {
	at := position{topic: p.q.t.name, queue: p.q.id, host: c.host}
	count, read, body := 0, 0, 0
	now := int64(0)
	for i := range batch {
		e := &batch[i]
		if count == p.max || count > 0 && body+e.m.encodedSize(at.topic) > pullBytes {
			break
		}
		read++
		if p.filter != nil && !p.filter.takes(e.m) || e.m.Expires != 0 && expired(e.m, &now) {
			e.m = nil
			continue
		}
		body += e.m.encodedSize(at.topic)
		count++
	}
	from := p.offset
	p.offset += int64(read)
	if count == 0 {
		// One that has been held goes on looking; the client learns now and then how far it is.
		if p.passed += read; p.timer != nil && p.passed < scanned {
			return false
		}
		c.pullAnswer(w, p, wire.ResPullRetryImmediately, p.offset, first, next, 0)
		return true
	}
	w.B = slices.Grow(w.B, body+512)
	c.pullAnswer(w, p, wire.ResSuccess, p.offset, first, next, body)
	for i := range batch[:read] {
		if e := &batch[i]; e.m != nil {
			at.offset, at.at = from+int64(i), e.at
			at.log = logOffset(p.q.t.id, at.queue, at.offset)
			w.B = e.m.append(w.B, &at)
		}
	}
	c.s.delivered.Add(uint64(count))
	return true
}

func expired(m *message, now *int64) bool {
	if *now == 0 {
		*now = time.Now().UnixMilli()
	}
	return m.Expires <= *now
}

// pullAnswer appends an answer to a pull. A body of that many bytes follows.
func (c *conn) pullAnswer(w *wire.Writer, p *pull, code int, offset, first, next int64, body int) {
	w.Begin(p.codec, code, wire.FlagAnswer, p.opaque, "")
	w.Int("suggestWhichBrokerId", 0)
	w.Int("nextBeginOffset", offset)
	w.Int("minOffset", first)
	w.Int("maxOffset", next)
	w.End(body)
}

// hold notes a pull that waits in its queue's list, from where it comes back by ready, at its deadline at the latest.
func (c *conn) hold(p *pull) {
	c.held[p] = true
	c.s.held.Add(1)
	p.timer = time.AfterFunc(time.Until(p.deadline), func() {
		if p.q.forget(p) { // else it has just been woken
			c.ready(p)
		}
	})
}

// letGo answers the held pulls of groups that the client has left: further messages are for other members.
func (c *conn) letGo(w *wire.Writer, left []*group) {
	for p := range c.held {
		if slices.Contains(left, p.g) && p.q.forget(p) {
			p.deadline = time.Time{}
			c.serve(w, p)
		}
	}
}

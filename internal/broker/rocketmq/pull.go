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
	holds    bool
	deadline time.Time
	held     int  // its place in the connection's list plus one; 0: not held
	woken    bool // it has been held
	passed   int  // messages that the filter left out since
}

// pull handles PULL_MESSAGE (PullMessageProcessor).
func (c *conn) pull(r *wire.Frame) error {
	t := c.s.findTopic(r.Get("topic"))
	if t == nil {
		c.w.simple(r, wire.ResTopicNotExist, "topic["+string(r.Get("topic"))+"] not exist, apply first please!")
		return nil
	}
	q := t.queue(r.NumberOr("queueId", -1))
	if q == nil {
		c.w.simple(r, wire.ResSystemError, "queueId["+string(r.Get("queueId"))+"] is illegal, topic:["+t.name+"]")
		return nil
	}
	g := c.s.findGroup(r.Get("consumerGroup"))
	if g == nil {
		if g = c.s.makeGroup(string(r.Get("consumerGroup"))); g == nil {
			c.w.simple(r, wire.ResSubscriptionNotExist, "the name of the consumer group is illegal")
			return nil
		}
	}
	g.alive()
	flags := r.NumberOr("sysFlag", 0)
	f, code, remark := c.filterOf(r, g, t, flags&wire.PullSubscription != 0)
	if code != wire.ResSuccess {
		c.w.simple(r, code, remark)
		return nil
	}
	if flags&wire.PullCommitOffset != 0 {
		if offset := r.NumberOr("commitOffset", -1); offset >= 0 {
			t.commit(q, g.name, offset)
		}
	}
	p := c.newPull()
	if p == nil {
		return c.refuse(r, wire.ResSystemBusy, "too many pulls under way on one connection")
	}
	p.codec, p.opaque, p.q, p.g, p.filter = r.Codec, r.Opaque, q, g, f
	p.offset, p.max = r.NumberOr("queueOffset", 0), int(min(max(r.NumberOr("maxMsgNums", 32), 1), pullMessages))
	p.holds = flags&wire.PullSuspend != 0
	if p.holds {
		hold := time.Duration(min(max(r.NumberOr("suspendTimeoutMillis", 0), 0),
			longestHold.Milliseconds())) * time.Millisecond
		p.deadline = time.Now().Add(hold)
	}
	c.pulls = append(c.pulls, p)
	return nil
}

// newPull returns nil if the connection has too many.
func (c *conn) newPull() *pull {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.livePulls == maxPulls {
		return nil
	}
	c.livePulls++
	if n := len(c.free); n > 0 {
		p := c.free[n-1]
		c.free = c.free[:n-1]
		*p = pull{c: c}
		return p
	}
	return &pull{c: c}
}

// write writes answers, and answers pulls, until the connection ends.
func (c *conn) write() {
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		for c.writeOut() {
		}
	}
}

// writeOut writes the waiting frames; it returns false when there are none.
func (c *conn) writeOut() bool {
	for over := c.s.store.Stalled(); over != nil; over = c.s.store.Stalled() {
		select {
		case <-over:
		case <-c.done:
			return false
		}
	}
	c.mu.Lock()
	if c.writing { // the reader is, and will wake us
		c.mu.Unlock()
		return false
	}
	c.writing = true
	w := &c.out2
	w.B = c.out
	c.out, c.spare = c.spare[:0], nil
	serving, sweep, left := c.waiting, c.sweep, c.left
	c.waiting, c.sweep, c.left = c.serving[:0], false, nil
	if c.drained != nil {
		close(c.drained)
		c.drained = nil
	}
	c.mu.Unlock()
	if sweep {
		c.sweepHeld(w, left)
	}
	for i, p := range serving {
		serving[i] = nil
		p.woken = p.held > 0
		c.unhold(p)
		if c.answerPull(w, p) {
			c.recycle(p)
		}
		if len(w.B) >= writeSize {
			if !c.writeNow(w) {
				return false
			}
		}
	}
	c.serving = serving[:0]
	if len(w.B) == 0 {
		c.keep(w)
		return len(serving) > 0
	}
	if !c.writeNow(w) {
		return false
	}
	c.keep(w)
	return true
}

func (c *conn) writeNow(w *writer) bool {
	err := c.put(w.B)
	w.B = w.B[:0]
	if err != nil {
		c.close()
		return false
	}
	return true
}

// keep ends a round of writing; the buffer is for the next answers.
func (c *conn) keep(w *writer) {
	if cap(w.B) > keptBuffer {
		w.B = nil
	}
	c.mu.Lock()
	c.spare, c.writing = w.B[:0], false
	c.mu.Unlock()
	w.B = nil
}

func (c *conn) recycle(p *pull) {
	p.q, p.filter = nil, nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.livePulls--
	const most = 1024
	if len(c.free) < most {
		c.free = append(c.free, p)
	}
}

// answerPull answers a pull; false if it is held instead.
func (c *conn) answerPull(w *writer, p *pull) bool {
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
		if p.holds && time.Until(p.deadline) > 0 {
			waiter = p
			c.hold(p) // before the queue has it
		}
		n, first, next := q.read(c.batch[:size], p.offset, waiter)
		switch {
		case n == 0 && p.offset == next && waiter != nil:
			return false
		case n == 0 && p.offset == next:
			c.unhold(p)
			c.pullAnswer(w, p, wire.ResPullNotFound, p.offset, first, next, 0)
			return true
		case n == 0:
			c.unhold(p)
			moved := first
			if p.offset > next {
				moved = next
			}
			c.pullAnswer(w, p, wire.ResPullOffsetMoved, moved, first, next, 0)
			return true
		}
		c.unhold(p)
		batch := c.batch[:n]
		done := c.messages(w, p, batch, first, next)
		clear(batch)
		if done {
			return true
		}
	}
}

// messages answers a pull with those of the batch that pass its filter; false if there are none and it is to go on
// looking.
func (c *conn) messages(w *writer, p *pull, batch []entry, first, next int64) bool {
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
		if p.passed += read; p.woken && p.passed < scanned {
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
func (c *conn) pullAnswer(w *writer, p *pull, code int, offset, first, next int64, body int) {
	w.Begin(p.codec, code, wire.FlagAnswer, p.opaque, "")
	w.Int("suggestWhichBrokerId", 0)
	w.Int("nextBeginOffset", offset)
	w.Int("minOffset", first)
	w.Int("maxOffset", next)
	w.End(body)
}

// hold puts a pull on the list of held pulls.
func (c *conn) hold(p *pull) {
	if p.held > 0 {
		return
	}
	c.held = append(c.held, p)
	p.held = len(c.held)
	c.s.held.Add(1)
	if c.sweepAt.IsZero() || p.deadline.Before(c.sweepAt) {
		c.sweepAt = p.deadline
		c.timer.Reset(time.Until(p.deadline))
	}
}

func (c *conn) unhold(p *pull) {
	if p.held == 0 {
		return
	}
	last := len(c.held) - 1
	c.held[p.held-1] = c.held[last]
	c.held[p.held-1].held = p.held
	c.held[last] = nil
	c.held = c.held[:last]
	p.held = 0
	c.s.held.Add(-1)
}

// release answers the held pulls of a group that the client has left: further messages are for other members.
func (c *conn) release(g *group) {
	c.mu.Lock()
	c.left, c.sweep = append(c.left, g), true
	c.mu.Unlock()
	c.wakeWriter()
}

// sweepHeld answers the held pulls whose time is over, and those of groups that were left.
func (c *conn) sweepHeld(w *writer, left []*group) {
	now := time.Now()
	var next time.Time
	for i := len(c.held) - 1; i >= 0; i-- {
		p := c.held[i]
		if p.deadline.After(now) && !slices.Contains(left, p.g) {
			if next.IsZero() || p.deadline.Before(next) {
				next = p.deadline
			}
			continue
		}
		if !p.q.forget(p) {
			continue // it has just been woken
		}
		c.unhold(p)
		first, end := p.q.limits()
		c.pullAnswer(w, p, wire.ResPullNotFound, p.offset, first, end, 0)
		c.recycle(p)
	}
	if c.sweepAt = next; !next.IsZero() {
		c.timer.Reset(next.Sub(now))
	}
}

package rocketmq

import (
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/broker/selector"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

const (
	// pullMessages and pullBytes bound the answer to a pull.
	pullMessages = 4096
	pullBytes    = 1 << 20
	// scanned bounds the messages that a filter skips before an answer with the new offset.
	scanned = 1024
	// longestHold bounds the hold of a pull.
	longestHold = 5 * time.Minute
	// writeBatch is the output, in bytes, gathered for one write.
	writeBatch = 256 << 10
	// maxPulls bounds the open pulls of a connection: one per queue of many topics.
	maxPulls = 1 << 16
)

// pull is a request for messages. It belongs to the writer or, while it waits, to a queue.
type pull struct {
	c        *conn
	opaque   uint32
	q        *queue
	g        *group
	offset   int64
	max      int
	filter   store.Filter
	deadline time.Time   // of a held pull; zero: do not hold it
	timer    *time.Timer // of the deadline; nil: not held yet
	skipped  int         // messages, by the filter
}

// pull handles PULL_MESSAGE (PullMessageProcessor).
func (c *conn) pull(r *wire.Frame) error {
	q := c.queueOf(r)
	if q == nil {
		return nil
	}
	g := c.groupOf(r)
	if g == nil {
		return c.refuseGroup(r, string(r.Get("consumerGroup")))
	}
	flags := r.NumberOr("sysFlag", 0)
	f, code, remark := c.filterOf(r, g, q.t, flags&wire.PullSubscription != 0)
	if code != wire.ResSuccess {
		return c.refuse(r, code, remark)
	}
	if offset := r.NumberOr("commitOffset", -1); flags&wire.PullCommitOffset != 0 && offset >= 0 {
		q.t.commit(q, g.name, offset)
	}
	if c.openPulls.Add(1) > maxPulls {
		c.openPulls.Add(-1)
		return c.refuse(r, wire.ResSystemBusy, "too many pulls under way on one connection")
	}
	p := &pull{
		c: c, opaque: r.Opaque, q: q, g: g, filter: f, offset: r.NumberOr("queueOffset", 0),
		max: int(min(max(r.NumberOr("maxMsgNums", 32), 1), pullMessages)),
	}
	if flags&wire.PullSuspend != 0 {
		hold := min(max(r.NumberOr("suspendTimeoutMillis", 0), 0), longestHold.Milliseconds())
		p.deadline = time.Now().Add(time.Duration(hold) * time.Millisecond)
	}
	c.pulls = append(c.pulls, p)
	return nil
}

// write is the writer's loop.
func (c *conn) write() {
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		c.writePending()
	}
}

// writePending writes the waiting frames and answers the waiting pulls.
func (c *conn) writePending() {
	if c.s.store.AwaitStall(c.done, func() error { return nil }) != nil {
		return
	}
	c.mu.Lock()
	w := &c.written
	c.out, w.B = w.B[:0], c.out
	c.waiting, c.serving = c.serving[:0], c.waiting
	left := c.left
	c.left = nil
	c.mu.Unlock()
	store.Signal(c.drained)
	for i, p := range c.serving {
		c.serving[i] = nil
		c.serve(w, p)
		if len(w.B) >= writeBatch && !c.writeNow(w) {
			return
		}
	}
	if len(left) > 0 {
		c.endPulls(w, left)
	}
	if len(w.B) > 0 && !c.writeNow(w) {
		return
	}
	if cap(w.B) > keepBuffer {
		w.B = nil
	}
}

// writeNow writes the gathered frames within idleTimeout. It returns false at the end of the connection.
func (c *conn) writeNow(w *wire.Writer) bool {
	if now := time.Now(); now.Sub(c.extended) > idleTimeout/8 {
		c.extended = now
		_ = c.nc.SetWriteDeadline(now.Add(idleTimeout)) // fails only on a closed connection
	}
	_, err := c.nc.Write(w.B)
	w.B = w.B[:0]
	if err != nil {
		c.close()
		return false
	}
	return true
}

// serve answers or holds a pull that does not wait in a queue.
func (c *conn) serve(w *wire.Writer, p *pull) {
	if p.timer != nil {
		p.timer.Stop()
		delete(c.held, p)
		c.s.count(func(n *Stats) { n.HeldPulls-- })
	}
	if c.answerPull(w, p) {
		c.openPulls.Add(-1)
	}
}

// answerPull answers a pull, or holds it and returns false.
func (c *conn) answerPull(w *wire.Writer, p *pull) bool {
	q := p.q
	if q.t.gone.Load() {
		w.Begin(wire.ResTopicNotExist, wire.FlagAnswer, p.opaque, "topic["+q.t.name+"] was deleted")
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

// messages answers a pull with the filtered messages of the batch; false if there are none and the search continues.
func (c *conn) messages(w *wire.Writer, p *pull, batch []entry, first, next int64) bool {
	t := p.q.t
	count, read, body := 0, 0, 0
	now := int64(0)
	for i := range batch {
		e := &batch[i]
		if count == p.max || count > 0 && body+e.m.encodedSize(t.name) > pullBytes {
			break
		}
		read++
		if p.filter != nil && !p.filter(&e.m.Message) || e.m.Expired(&now) {
			e.m = nil
			continue
		}
		body += e.m.encodedSize(t.name)
		count++
	}
	from := p.offset
	p.offset += int64(read)
	if count == 0 {
		if p.skipped += read; p.timer != nil && p.skipped < scanned {
			return false
		}
		c.pullAnswer(w, p, wire.ResPullRetryImmediately, p.offset, first, next, 0)
		return true
	}
	w.B = slices.Grow(w.B, body+512)
	c.pullAnswer(w, p, wire.ResSuccess, p.offset, first, next, body)
	for i := range batch[:read] {
		if e := &batch[i]; e.m != nil {
			offset := from + int64(i)
			w.B = e.m.append(w.B, t.name, wire.MessageHead{
				Queue: int32(p.q.id), QueueOffset: offset, LogOffset: logOffset(t.id, p.q.id, offset), Stored: e.at,
				StoreHost: c.host[:],
			})
		}
	}
	c.s.count(func(n *Stats) { n.Delivered += uint64(count) })
	return true
}

// pullAnswer appends an answer to a pull without its body, of a number of bytes.
func (c *conn) pullAnswer(w *wire.Writer, p *pull, code int, offset, first, next int64, body int) {
	w.Begin(code, wire.FlagAnswer, p.opaque, "")
	w.Int("suggestWhichBrokerId", 0)
	w.Int("nextBeginOffset", offset)
	w.Int("minOffset", first)
	w.Int("maxOffset", next)
	w.End(body)
}

// hold sets the timer of a pull that waits in its queue.
func (c *conn) hold(p *pull) {
	c.held[p] = true
	c.s.count(func(n *Stats) { n.HeldPulls++ })
	p.timer = time.AfterFunc(time.Until(p.deadline), func() {
		if p.q.forget(p) { // else it was just woken
			c.ready(p)
		}
	})
}

// endPulls answers the held pulls of groups left by the client: further messages are for other members.
func (c *conn) endPulls(w *wire.Writer, left []*group) {
	for p := range c.held {
		if slices.Contains(left, p.g) && p.q.forget(p) {
			p.deadline = time.Time{}
			c.serve(w, p)
		}
	}
}

// newFilter parses an expression: "*" or tags joined by "||", or SQL92. A filter of nil takes all. Tags are compared by
// their hashes, as brokers do; clients compare the texts.
func newFilter(kind, expression string) (store.Filter, error) {
	if kind == wire.KindSQL {
		return selector.Parse(expression)
	}
	var codes []int32
	for tag := range strings.SplitSeq(expression, "||") {
		switch tag = strings.TrimSpace(tag); tag {
		case "":
		case "*":
			return nil, nil
		default:
			codes = append(codes, wire.HashCode([]byte(tag)))
		}
	}
	if len(codes) == 0 {
		return nil, nil
	}
	return func(m *store.Message) bool {
		own, _ := m.Content.(*message)
		tags := wire.Property(own.properties, wire.PropTags)
		return len(tags) > 0 && slices.Contains(codes, wire.HashCode(tags))
	}, nil
}

// filterOf returns the filter of a pull: its own or its group's.
func (c *conn) filterOf(r *wire.Frame, g *group, t *topic, own bool) (f store.Filter, code int, remark string) {
	sub := g.subscription(t.name)
	if own {
		kind, expression := r.Get("expressionType"), r.Get("subscription")
		if sub = c.pullSub; sub.kind != string(kind) || sub.expression != string(expression) {
			sub = newSubscription(string(kind), string(expression), 0)
			c.pullSub = sub
		}
	}
	switch {
	case sub == nil:
		return nil, wire.ResSubscriptionNotExist, "the consumer's subscription not exist"
	case !own && sub.version < r.NumberOr("subVersion", 0):
		return nil, wire.ResSubscriptionNotLatest, "the consumer's subscription not latest"
	case sub.err != nil:
		return nil, wire.ResSubscriptionParseFailed, "parse the consumer's subscription failed: " + sub.err.Error()
	}
	return sub.filter, wire.ResSuccess, ""
}

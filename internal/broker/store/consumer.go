package store

import (
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/perfmq/perfmq/pkg/transport"
)

// Filter selects messages. It is called with locks held and must not call the store.
type Filter func(*Message) bool

// Consumer takes messages from a queue and settles them by number, in any order. Take is for one goroutine at a time;
// all other methods are safe for concurrent use.
type Consumer struct {
	q       *Queue
	filter  Filter
	notify  func()
	waiting bool               // on the queue's list; this and the next two fields are under its lock
	cursors [priorities]uint64 // positions before which a level holds nothing for this consumer
	version uint64             // of the queue, for which cursors is valid

	// Limit bounds the unsettled deliveries, unless it is 0. It is set before the first Take.
	Limit int

	mu        sync.Mutex
	starved   bool                     // Take has reached Limit
	unsettled transport.Tracker[entry] // deliveries by number
	closed    bool
}

// Delivery is an unsettled message of a consumer.
type Delivery struct {
	// ID counts the consumer's deliveries from 0, without gaps.
	ID uint64
	// Attempts counts the failed deliveries of the message.
	Attempts uint32
	Message  *Message
}

// Consume adds a consumer; filter may be nil. After a Take that returned less than asked for, notify is called once
// when there may be a message; any goroutine calls it, and it must not block. Consume fails with [ErrNoMemory].
func (q *Queue) Consume(filter Filter, notify func()) (*Consumer, error) {
	c := &Consumer{q: q, filter: filter, notify: notify}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.dest.store.Reserve(consumerSize) {
		return nil, ErrNoMemory
	}
	q.consumers = append(q.consumers, c)
	return c, nil
}

// Take fills buf with available messages, up to Limit, and returns their number. If that is less than asked for, notify
// is called when there may be more; after Limit was reached, not before a quarter of it is settled.
func (c *Consumer) Take(buf []Delivery) (n int) {
	q := c.q
	if len(buf) == 0 {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0
	}
	asked := len(buf)
	if c.Limit > 0 {
		buf = buf[:min(asked, c.Limit-c.unsettled.Len())]
	}
	var now int64
	for n < len(buf) && !q.dest.store.Stalled() {
		e, ok := q.next(c, &now)
		if !ok {
			break
		}
		buf[n] = Delivery{ID: c.unsettled.Next, Attempts: e.attempts, Message: e.m}
		c.unsettled.Add(e)
		n++
		q.counts.Delivered++
		if e.attempts > 0 {
			q.counts.Redelivered++
		}
	}
	c.starved = n == len(buf) && n < asked
	switch {
	case n < len(buf) && !c.waiting:
		c.waiting = true
		q.waiters = append(q.waiters, c)
	case n == len(buf) && c.waiting: // it may have no credit left: the next message is for another consumer
		c.stopWaiting()
	}
	return n
}

// Yield ends the wait of a consumer without credit. If it was notified already, the other consumers are notified in its
// place: otherwise the message would stay in the queue until the next one arrives.
func (c *Consumer) Yield() {
	q := c.q
	q.mu.Lock()
	notified := !c.waiting
	if c.waiting {
		c.stopWaiting()
	}
	q.mu.Unlock()
	if notified {
		q.notifyConsumers()
	}
}

// stopWaiting removes c from the queue's waiters; the queue's lock is held.
func (c *Consumer) stopWaiting() {
	c.waiting = false
	c.q.waiters = slices.DeleteFunc(c.q.waiters, func(x *Consumer) bool { return x == c })
}

// Outcome is the end of a delivery.
type Outcome uint8

// The outcomes: a message is removed, or returned to its queue.
const (
	Accepted Outcome = iota
	Rejected         // removed, and counted
	Released         // returned
	Failed           // returned, and counted as an attempt
)

// Settle ends a delivery. It returns false if the delivery was settled before.
func (c *Consumer) Settle(id uint64, o Outcome) bool {
	c.q.dest.store.waitForStall()
	return c.settle(id, id, o) > 0
}

// SettleRange ends the unsettled deliveries from first to last, and returns their number.
func (c *Consumer) SettleRange(first, last uint64, o Outcome) int {
	c.q.dest.store.waitForStall()
	return c.settle(first, last, o)
}

// settle is SettleRange, also during a stall.
func (c *Consumer) settle(first, last uint64, o Outcome) (n int) {
	var bytes int64
	var back []entry
	end := func(pos uint64) {
		e := c.unsettled.Remove(pos)
		switch {
		case e.m == nil:
			return
		case o == Failed:
			e.attempts++
			fallthrough
		case o == Released:
			back = append(back, e)
		}
		n++
		bytes += e.m.size()
	}
	c.mu.Lock()
	if first == last {
		end(first)
	} else {
		c.unsettled.Each(first, last, end)
	}
	refill := c.starved && c.unsettled.Len() <= c.Limit*3/4
	c.starved = c.starved && !refill
	c.mu.Unlock()
	q := c.q
	if o == Rejected {
		q.mu.Lock()
		q.counts.Rejected += uint64(n) //nolint:gosec // a count
		q.mu.Unlock()
	}
	if o == Accepted {
		q.accepted.Add(uint64(n)) //nolint:gosec // a count
	}
	if back != nil {
		q.giveBack(back)
	} else {
		q.shrink(int64(n), bytes)
	}
	if refill {
		c.notify()
	}
	return n
}

// Queue returns the consumer's queue.
func (c *Consumer) Queue() *Queue { return c.q }

// Close ends the consumer and returns its unsettled deliveries to the queue. failed counts them as attempts, for a
// broken connection, whose client may have processed them. A volatile subscription ends with its last consumer. Later
// calls do nothing.
func (c *Consumer) Close(failed bool) {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return
	}
	c.q.dest.store.Return(consumerSize)
	c.q.leave(c)
	o := Released
	if failed {
		o = Failed
	}
	c.settle(0, math.MaxUint64, o)
	if !c.q.durable {
		_ = c.q.Remove() // ErrInUse: there is another consumer
	}
}

// leave removes c from the queue and frees its groups.
func (q *Queue) leave(c *Consumer) {
	q.mu.Lock()
	q.consumers = slices.DeleteFunc(q.consumers, func(x *Consumer) bool { return x == c })
	q.waiters = slices.DeleteFunc(q.waiters, func(x *Consumer) bool { return x == c })
	maps.DeleteFunc(q.owners, func(_ uint16, x *Consumer) bool { return x == c })
	q.mu.Unlock()
	q.notifyConsumers() // c may have been notified of a message, and its groups are free
}

// may reports whether c may receive m, without claiming the group; the queue's lock is held.
func (c *Consumer) may(m *Message) bool {
	if c.filter != nil && !c.filter(m) {
		return false
	}
	if m.Group == "" {
		return true
	}
	owner := c.q.owners[c.q.hash(m.Group)]
	return owner == nil || owner == c
}

// claim reports whether c may receive m, and makes it the owner of a free group.
func (c *Consumer) claim(m *Message) bool {
	if !c.may(m) {
		return false
	}
	if m.Group != "" {
		c.q.owners[c.q.hash(m.Group)] = c
	}
	return true
}

// hash returns the key of a message group in owners.
func (q *Queue) hash(group string) uint16 {
	return uint16(maphash.String(q.dest.store.seed, group)) //nolint:gosec // a part of the hash
}

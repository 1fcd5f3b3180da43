package store

import (
	"errors"
	"slices"
	"sync"
)

// Filter tells whether a message is wanted. It is called with locks held and must not call the store.
type Filter func(*Message) bool

// Consumer takes messages from a queue and settles them, each by its number, in any order. Take is for one goroutine
// at a time; all else is safe for concurrent use.
type Consumer struct {
	q       *Queue
	filter  Filter
	notify  func()
	waiting bool               // on the queue's list; its lock guards this and cursors
	passed  [priorities]uint64 // positions up to which the lanes hold nothing for this consumer
	version uint64             // of the queue, when passed was right

	mu     sync.Mutex
	held   lane             // by number
	old    map[uint64]entry // held for so long that keeping them in the lane would make it grow
	closed bool
}

// Delivery is a message in the hands of a consumer.
type Delivery struct {
	// ID counts the consumer's deliveries from 0, without gaps.
	ID uint64
	// Attempts is how often the message was delivered before and came back as not dealt with.
	Attempts uint32
	Message  *Message
}

// ErrGone says that the queue or subscription was deleted.
var ErrGone = errors.New("the queue was deleted")

// Consume adds a consumer. notify is called, by any goroutine and without it having to wait, when there may be
// something to take after Take had returned less than asked for. filter may be nil. It fails with [ErrGone] or
// [ErrNoMemory].
func (q *Queue) Consume(filter Filter, notify func()) (*Consumer, error) {
	c := &Consumer{q: q, filter: filter, notify: notify}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		return nil, ErrGone
	}
	if !q.dest.store.Reserve(consumerSize) {
		return nil, ErrNoMemory
	}
	q.consumers = append(q.consumers, c)
	return c, nil
}

// Take fills buf with the messages available now and returns their number. If that is less than asked for, notify is
// called when there may be more.
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
	var now int64
	for n < len(buf) && !q.dest.store.stall.active() {
		e, ok := q.next(c, &now)
		if !ok {
			break
		}
		if c.held.sparse() {
			c.retire()
		}
		buf[n] = Delivery{ID: c.held.next, Attempts: e.attempts, Message: e.m}
		c.held.push(e)
		n++
		q.delivered++
		if e.attempts > 0 {
			q.redelivered++
		}
	}
	switch {
	case n < len(buf) && !c.waiting:
		c.waiting = true
		q.waiters = append(q.waiters, c)
	case n == len(buf) && c.waiting: // it may have no use for more: the next message is for another one
		c.stopWaiting()
	}
	return n
}

// Yield is for a consumer that is or was to be notified and now has no use for a message: it is taken off the list, and
// if it was told already, the others are told instead. Without Yield, the message it was told about would stay in the
// queue until the next one comes.
func (c *Consumer) Yield() {
	q := c.q
	q.mu.Lock()
	told := !c.waiting
	if c.waiting {
		c.stopWaiting()
	}
	q.mu.Unlock()
	if told {
		q.tellAll()
	}
}

// stopWaiting takes c off the list of those to be told; the queue's lock is held.
func (c *Consumer) stopWaiting() {
	c.waiting = false
	c.q.waiters = slices.DeleteFunc(c.q.waiters, func(x *Consumer) bool { return x == c })
}

// Accept settles a delivery: the message is done with. It returns false if it was settled before.
func (c *Consumer) Accept(id uint64) bool {
	e, ok := c.release(id)
	if ok {
		c.q.settledAll.Add(1)
		c.q.shrink(1, e.m.size())
	}
	return ok
}

// AcceptThrough accepts id and all deliveries before it that are not settled, and returns how many that were.
func (c *Consumer) AcceptThrough(id uint64) (n int) {
	var bytes int64
	c.q.dest.store.stall.await()
	c.mu.Lock()
	for c.held.first != c.held.next && c.held.first <= id {
		e := c.held.take(c.held.first)
		bytes += e.m.size()
		n++
	}
	for i, e := range c.old {
		if i <= id {
			delete(c.old, i)
			bytes += e.m.size()
			n++
		}
	}
	c.mu.Unlock()
	c.q.settledAll.Add(uint64(n))
	c.q.shrink(int64(n), bytes)
	return n
}

// Release settles a delivery by giving it back to the queue; failed counts it as an attempt.
func (c *Consumer) Release(id uint64, failed bool) bool {
	e, ok := c.release(id)
	if !ok {
		return false
	}
	if failed {
		e.attempts++
	}
	c.q.giveBack([]entry{e})
	return true
}

// Retry is Release of a delivery that failed, and Reject if it was the last one of so many.
func (c *Consumer) Retry(id uint64, most uint32) bool {
	e, ok := c.release(id)
	e.attempts++
	switch {
	case !ok:
	case e.attempts >= most:
		c.q.reject(e)
	default:
		c.q.giveBack([]entry{e})
	}
	return ok
}

// Reject settles a delivery as one that no consumer can deal with: it is dropped and counted.
func (c *Consumer) Reject(id uint64) bool {
	e, ok := c.release(id)
	if ok {
		c.q.reject(e)
	}
	return ok
}

func (q *Queue) reject(e entry) {
	q.mu.Lock()
	q.rejected++
	q.mu.Unlock()
	q.shrink(1, e.m.size())
}

// Queue returns where the consumer takes from.
func (c *Consumer) Queue() *Queue { return c.q }

func (c *Consumer) release(id uint64) (entry, bool) {
	c.q.dest.store.stall.await()
	c.mu.Lock()
	defer c.mu.Unlock()
	if id < c.held.first {
		e, ok := c.old[id]
		delete(c.old, id)
		return e, ok
	}
	if id >= c.held.next || c.held.at(id).m == nil {
		return entry{}, false
	}
	return c.held.take(id), true
}

// retire moves the held messages out of the lane.
func (c *Consumer) retire() {
	if c.old == nil {
		c.old = map[uint64]entry{}
	}
	for pos := c.held.first; pos != c.held.next; pos++ {
		if e := c.held.at(pos); e.m != nil {
			c.old[pos] = *e
		}
	}
	c.held = lane{items: c.held.items, first: c.held.next, next: c.held.next}
	clear(c.held.items)
}

// Held returns how many deliveries are not settled.
func (c *Consumer) Held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held.live + len(c.old)
}

// Close ends the consumer. Its unsettled messages go back to the queue; failed counts that as an attempt, which is
// right when the connection broke and the messages may have been seen. A subscription that is not durable ends with
// its last consumer. Later calls do nothing.
func (c *Consumer) Close(failed bool) {
	c.mu.Lock()
	c.retire()
	var entries []entry
	for _, e := range c.old {
		if failed {
			e.attempts++
		}
		entries = append(entries, e)
	}
	closed := c.closed
	c.closed, c.held, c.old = true, lane{next: c.held.next, first: c.held.next}, nil
	c.mu.Unlock()
	if closed {
		return
	}
	c.q.dest.store.Return(consumerSize)
	c.q.leave(c)
	c.q.giveBack(entries)
	c.q.dest.abandon(c.q)
}

// leave takes c off the queue's lists and frees the groups that it owned.
func (q *Queue) leave(c *Consumer) {
	q.mu.Lock()
	q.consumers = slices.DeleteFunc(q.consumers, func(x *Consumer) bool { return x == c })
	q.waiters = slices.DeleteFunc(q.waiters, func(x *Consumer) bool { return x == c })
	q.groups.leave(c)
	q.mu.Unlock()
	q.tellAll() // one of the others may have been told in vain, or may own a group now
}

// may tells whether c could have m, without claiming its group; the queue's lock is held.
func (c *Consumer) may(m *Message) bool {
	if c.filter != nil && !c.filter(m) {
		return false
	}
	if m.Group == "" {
		return true
	}
	owner := c.q.groups.owner(m.Group)
	return owner == nil || owner == c
}

// claim tells whether c may have m, and makes it the owner of its group if there is none.
func (c *Consumer) claim(m *Message) bool {
	if !c.may(m) {
		return false
	}
	if m.Group != "" {
		c.q.groups.claim(m.Group, c)
	}
	return true
}

// cursor returns where to go on looking in a lane.
func (c *Consumer) cursor(p int) *uint64 {
	if c.version != c.q.version {
		c.version, c.passed = c.q.version, [priorities]uint64{}
	}
	return &c.passed[p]
}

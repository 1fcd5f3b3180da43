package store

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Queue holds messages for consumers that compete for them: those of a queue, or those that a subscription of a topic
// has yet to get. It is safe for concurrent use.
type Queue struct {
	dest               *Destination
	name               string // of the subscription; empty for a queue
	exclusive, durable bool
	filter             Filter // of the subscription: messages that it does not want are not stored
	selector           string // its text

	size, bytes atomic.Int64 // of messages that are stored and not settled
	settledAll  atomic.Uint64

	mu        sync.Mutex
	levels    [priorities]*level // nil until the first message of the priority
	occupied  uint16             // bit p: level p may hold something
	expiry    expiry
	seq       uint64
	consumers []*Consumer
	waiters   []*Consumer // took all there was, and want to be told
	groups    *groups     // nil until the first message of a group
	version   uint64      // changes when a message that a consumer passed over may have become its own
	gone      bool

	stored, delivered, redelivered, returned, expired, rejected uint64

	room    Waiters
	delayed Delayed[entry]
}

// put stores m and tells a consumer.
func (q *Queue) put(m *Message) {
	if q.filter != nil && !q.filter(m) {
		return
	}
	size := m.size()
	q.size.Add(1)
	q.bytes.Add(size)
	q.dest.store.Charge(size)
	q.mu.Lock()
	if q.gone {
		q.mu.Unlock()
		q.shrink(1, size)
		return
	}
	q.seq++
	q.stored++
	e := entry{m: m, seq: q.seq}
	q.expiry.note(m.Expires)
	if m.NotBefore != 0 && m.NotBefore > time.Now().UnixNano() {
		q.mu.Unlock()
		if !q.delayed.Add(m.NotBefore, e, q.ripe) {
			q.shrink(1, size)
		}
		return
	}
	wake := q.offer(e)
	q.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// ripe makes a message available whose time has come.
func (q *Queue) ripe(e entry) {
	q.mu.Lock()
	if q.gone {
		q.mu.Unlock()
		q.shrink(1, e.m.size())
		return
	}
	q.expiry.note(e.m.Expires)
	wake := q.offer(e)
	q.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// offer makes e available and returns the consumer to be told; q.mu is held.
func (q *Queue) offer(e entry) (wake func()) {
	p := min(e.m.Priority, priorities-1)
	l := q.level(p)
	if l.sparse() {
		l.compact()
		q.version++
	}
	l.push(e)
	if e.m.Group != "" && q.groups == nil {
		q.groups = newGroups()
	}
	return q.waiter(e.m)
}

// level returns the level of a priority, which is about to hold something; q.mu is held.
func (q *Queue) level(p uint8) *level {
	if q.levels[p] == nil {
		q.levels[p] = &level{}
	}
	q.occupied |= 1 << p
	return q.levels[p]
}

// waiter takes the first waiting consumer that may have m off the list; q.mu is held.
func (q *Queue) waiter(m *Message) (notify func()) {
	for i, c := range q.waiters {
		if c.may(m) {
			q.waiters = slices.Delete(q.waiters, i, i+1)
			c.waiting = false
			return c.notify
		}
	}
	return nil
}

// next removes and returns the next message that c may have; q.mu is held.
func (q *Queue) next(c *Consumer, now *int64) (entry, bool) {
	for mask := q.occupied; mask != 0; {
		p := bits.Len16(mask) - 1
		mask &^= 1 << p
		for {
			e, ok := q.nextOf(p, c)
			if !ok {
				break
			}
			if x := e.m.Expires; x == 0 || !past(x, now) {
				return e, true
			}
			q.expired++
			q.shrink(1, e.m.size())
		}
		if l := q.levels[p]; l.live == 0 && len(l.back) == 0 {
			q.occupied &^= 1 << p
		}
	}
	return entry{}, false
}

// past tells whether the moment x, in milliseconds, is over; now is read at the first need of it.
func past(x int64, now *int64) bool {
	if *now == 0 {
		*now = time.Now().UnixMilli()
	}
	return x <= *now
}

func (q *Queue) nextOf(p int, c *Consumer) (entry, bool) {
	l := q.levels[p]
	back := l.back
	if c.filter == nil && q.groups == nil {
		if n := len(back) - 1; n >= 0 && (l.live == 0 || back[n].seq < l.at(l.first).seq) {
			e := back[n]
			back[n] = entry{}
			l.back = back[:n]
			return e, true
		}
		if l.live == 0 {
			return entry{}, false
		}
		return l.take(l.first), true
	}
	for i, e := range slices.Backward(back) {
		if c.claim(e.m) {
			l.back = slices.Delete(back, i, i+1)
			return e, true
		}
	}
	pos := c.cursor(p)
	*pos = max(*pos, l.first)
	for ; *pos != l.next; *pos++ {
		if e := l.at(*pos); e.m != nil && c.claim(e.m) {
			return l.take(*pos), true
		}
	}
	return entry{}, false
}

// giveBack returns messages to their place in the queue.
func (q *Queue) giveBack(entries []entry) {
	q.mu.Lock()
	if q.gone {
		q.mu.Unlock()
		var bytes int64
		for _, e := range entries {
			bytes += e.m.size()
		}
		q.shrink(int64(len(entries)), bytes)
		return
	}
	var wakes []func()
	for _, e := range entries {
		l := q.level(min(e.m.Priority, priorities-1))
		at, _ := slices.BinarySearchFunc(l.back, e.seq, func(x entry, seq uint64) int {
			switch { // the oldest is last
			case x.seq > seq:
				return -1
			case x.seq < seq:
				return 1
			}
			return 0
		})
		l.back = slices.Insert(l.back, at, e)
		q.returned++
		q.expiry.note(e.m.Expires)
		if wake := q.waiter(e.m); wake != nil {
			wakes = append(wakes, wake)
		}
	}
	q.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// shrink takes n messages off the size of the queue, and tells the waiters for room if an eighth of it is free now; of
// less they learn a little later. It may run inside the queue's lock.
func (q *Queue) shrink(n, bytes int64) {
	q.size.Add(-n)
	q.bytes.Add(-bytes)
	s := q.dest.store
	s.Return(bytes)
	if q.room.Wanted() && q.roomy(7, 8) && !s.full() && !s.Tight() {
		go q.room.Tell()
	}
}

// roomy tells whether the queue holds less than num/den of its limits.
func (q *Queue) roomy(num, den int64) bool {
	c := &q.dest.store.cfg
	return q.size.Load() < max(1, c.Limit*num/den) && q.bytes.Load() < max(1, c.LimitBytes*num/den)
}

// full tells whether there is no room, not even for lack of expired messages.
func (q *Queue) full() bool {
	if q.open() {
		return false
	}
	q.expire()
	return !q.open()
}

func (q *Queue) open() bool { return q.roomy(1, 1) && !q.dest.store.full() && !q.dest.store.Tight() }

// Room tells whether the queue takes messages. If not, notify is called, once, when it may again.
func (q *Queue) Room(notify func()) bool {
	if !q.full() {
		return true
	}
	if notify != nil {
		q.room.Add(q.dest.store, q.full, notify)
	}
	return false
}

// tellAll tells all waiters that something may have changed.
func (q *Queue) tellAll() {
	q.mu.Lock()
	waiters := q.waiters
	q.waiters = nil
	for _, c := range waiters {
		c.waiting = false
	}
	q.version++
	q.mu.Unlock()
	for _, c := range waiters {
		c.notify()
	}
}

// purge removes all messages that no consumer holds, and returns how many.
func (q *Queue) purge() (n int) {
	var bytes int64
	drop := func(e entry) {
		if e.m != nil {
			n++
			bytes += e.m.size()
		}
	}
	q.delayed.Stop(drop)
	q.mu.Lock()
	for _, l := range q.levels {
		if l == nil {
			continue
		}
		for pos := l.first; pos != l.next; pos++ {
			drop(*l.at(pos))
		}
		for _, e := range l.back {
			drop(e)
		}
		*l = level{lane: lane{first: l.next, next: l.next}}
	}
	q.occupied = 0
	q.mu.Unlock()
	q.shrink(int64(n), bytes)
	return n
}

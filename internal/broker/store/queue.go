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
	dest     *Destination
	name     string // of the subscription; empty for a queue
	durable  bool
	filter   Filter // of the subscription: messages that it does not want are not stored
	selector string // its text

	size, bytes atomic.Int64 // of messages that are stored and not settled
	wantRoom    atomic.Bool  // there are room waiters
	telling     atomic.Bool  // they will be told
	settledAll  atomic.Uint64

	mu        sync.Mutex
	levels    [priorities]*level // nil until the first message of the priority
	occupied  uint16             // bit p: level p may hold something
	delayed   delayed
	expiry    expiry
	seq       uint64
	consumers []*Consumer
	waiters   []*Consumer // took all there was, and want to be told
	groups    *groups     // nil until the first message of a group
	version   uint64      // changes when a message that a consumer passed over may have become its own
	room      []func()
	roomTold  time.Time // when so many waited for room that all were told, so that waiters without a connection go
	gone      bool

	stored, delivered, redelivered, returned, expired, rejected uint64
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
	if m.Expires != 0 {
		q.expiry.note(m.Expires)
		q.watch()
	}
	if m.NotBefore != 0 && m.NotBefore > time.Now().UnixNano() {
		q.delayed.add(q, e)
		q.mu.Unlock()
		return
	}
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
		if e.m.Expires != 0 {
			q.expiry.note(e.m.Expires)
			q.watch()
		}
		if wake := q.waiter(e.m); wake != nil {
			wakes = append(wakes, wake)
		}
	}
	q.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// shrink takes n messages off the size of the queue, and tells the waiters for room if there is some now.
func (q *Queue) shrink(n, bytes int64) {
	q.size.Add(-n)
	q.bytes.Add(-bytes)
	if bytes > 0 {
		q.dest.store.Return(bytes)
	}
	if q.wantRoom.Load() {
		q.mayTellRoom()
	}
}

// roomPause is how long waiters for room are not told of a little of it.
const roomPause = 100 * time.Millisecond

// mayTellRoom tells the waiters for room, not for each message that goes but for an eighth of the queue, or after a
// while: there may never be more. It may run inside the queue's lock.
func (q *Queue) mayTellRoom() {
	switch {
	case q.dest.store.full(), q.dest.store.Tight(): // it is not the queue that they wait for
	case q.roomy(7, 8):
		go q.tellRoom()
	case q.roomy(1, 1) && q.telling.CompareAndSwap(false, true):
		time.AfterFunc(roomPause, func() {
			q.telling.Store(false)
			if !q.dest.store.stall.active() { // at its end they are told anyway
				q.tellRoom()
			}
		})
	}
}

// roomy tells whether the queue holds less than num/den of its limits.
func (q *Queue) roomy(num, den int64) bool {
	c := &q.dest.store.cfg
	return q.size.Load() < max(1, c.Limit*num/den) && q.bytes.Load() < max(1, c.LimitBytes*num/den)
}

// crowd is how many may wait for room before all are told now and then: waiters that still need room ask again, and
// waiters whose connections have ended are forgotten.
const crowd = 256

// Room tells whether the queue takes messages. If not, notify is called, once, when it may again.
func (q *Queue) Room(notify func()) bool {
	full := func() bool { return !q.roomy(1, 1) || q.dest.store.full() || q.dest.store.Tight() }
	if !full() || q.expire() && !full() {
		return true
	}
	if notify == nil {
		return false
	}
	q.mu.Lock()
	q.room = append(q.room, notify)
	q.wantRoom.Store(true)
	q.watch()
	tooMany := len(q.room) > crowd && time.Since(q.roomTold) > time.Second
	if tooMany {
		q.roomTold = time.Now()
	}
	q.mu.Unlock()
	if q.dest.store.Tight() {
		q.dest.store.AwaitMemory(q)
	}
	switch {
	case !full(): // it may have emptied before wantRoom was seen
		q.tellRoom()
	case tooMany:
		go q.tellRoom() // not here: it calls the caller
	}
	return false
}

func (q *Queue) tellRoom() {
	q.mu.Lock()
	room := q.room
	q.room = nil
	q.wantRoom.Store(false)
	q.mu.Unlock()
	for _, notify := range room {
		notify()
	}
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
	q.mu.Lock()
	var bytes int64
	drop := func(e entry) {
		if e.m != nil {
			n++
			bytes += e.m.size()
		}
	}
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
	for _, e := range q.delayed.clear() {
		drop(e)
	}
	q.occupied = 0
	q.mu.Unlock()
	q.shrink(int64(n), bytes)
	return n
}

package store

import (
	"cmp"
	"container/heap"
	"errors"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// entry is a message in a queue.
type entry struct {
	m        *Message // nil: taken
	seq      uint64   // order of arrival
	attempts uint32   // failed deliveries
}

// level holds a queue's messages of one priority.
type level struct {
	transport.Ring[entry]
	back []entry // returned by consumers; the oldest is last
}

// Queue holds the messages of a queue, or of a subscription of a topic, for competing consumers. It is safe for
// concurrent use.
type Queue struct {
	dest               *Destination
	name               string // of the subscription; empty for a queue
	exclusive, durable bool
	filter             Filter // of the subscription: other messages are not stored
	selector           string // the text of filter

	size, bytes atomic.Int64 // of messages stored and not settled
	accepted    atomic.Uint64

	mu        sync.Mutex
	levels    [priorities]*level // nil until the first message of the priority
	occupied  uint16             // bit p: level p may hold something
	seq       uint64
	consumers []*Consumer
	waiters   []*Consumer // to be notified of a message
	// owners are the consumers of message groups, by a hash of their names: a few groups share an owner, and many take
	// no more memory. It is nil until the first message of a group.
	owners   map[uint16]*Consumer
	soonest  int64      // the earliest expiry of a message, in milliseconds since the Unix epoch; 0: none
	searched time.Time  // no search for expired messages before that
	version  uint64     // changes when consumers must search skipped messages again
	gone     bool       // a removed subscription
	counts   QueueStats // without Consumers, Depth, Bytes and Settled

	delayed Delayed[entry]
}

// Put stores m and notifies a consumer. It implements [Sink].
func (q *Queue) Put(m *Message) {
	if q.filter != nil && !q.filter(m) {
		return
	}
	size := m.size()
	q.size.Add(1)
	q.bytes.Add(size)
	q.dest.store.Charge(size)
	q.mu.Lock()
	q.seq++
	q.counts.Stored++
	e := entry{m: m, seq: q.seq}
	if m.NotBefore != 0 && m.NotBefore > time.Now().UnixNano() {
		q.mu.Unlock()
		if !q.delayed.Add(m.NotBefore, e, func(e entry) { q.mu.Lock(); q.enqueue(e) }) {
			q.shrink(1, size)
		}
		return
	}
	q.enqueue(e)
}

// enqueue makes a message available and notifies a consumer. The caller has locked q.mu; enqueue unlocks it.
func (q *Queue) enqueue(e entry) {
	if q.gone {
		q.mu.Unlock()
		q.shrink(1, e.m.size())
		return
	}
	l := q.level(e.m)
	if l.Sparse() {
		l.Compact()
		q.version++
	}
	l.Push(e)
	if e.m.Group != "" && q.owners == nil {
		q.owners = map[uint16]*Consumer{}
	}
	notify := q.waiter(e.m)
	q.mu.Unlock()
	if notify != nil {
		notify()
	}
}

// level returns the level of a message to be added, and marks it as occupied; q.mu is held.
func (q *Queue) level(m *Message) *level {
	q.noteExpiry(m)
	p := min(m.Priority, priorities-1)
	if q.levels[p] == nil {
		q.levels[p] = &level{}
	}
	q.occupied |= 1 << p
	return q.levels[p]
}

// waiter removes the first waiting consumer that may receive m from the list; q.mu is held.
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

// next removes and returns the next message for c; q.mu is held.
func (q *Queue) next(c *Consumer, now *int64) (entry, bool) {
	for mask := q.occupied; mask != 0; {
		p := bits.Len16(mask) - 1
		mask &^= 1 << p
		for {
			e, ok := q.nextOf(p, c)
			if !ok {
				break
			}
			if !e.m.Expired(now) {
				return e, true
			}
			q.counts.Expired++
			q.shrink(1, e.m.size())
		}
		if l := q.levels[p]; l.Live == 0 && len(l.back) == 0 {
			q.occupied &^= 1 << p
		}
	}
	return entry{}, false
}

func (q *Queue) nextOf(p int, c *Consumer) (entry, bool) {
	l := q.levels[p]
	back := l.back
	if c.filter == nil && q.owners == nil {
		if n := len(back) - 1; n >= 0 && (l.Live == 0 || back[n].seq < l.At(l.First).seq) {
			e := back[n]
			back[n] = entry{}
			l.back = back[:n]
			return e, true
		}
		if l.Live == 0 {
			return entry{}, false
		}
		return l.Take(l.First), true
	}
	for i, e := range slices.Backward(back) {
		if c.claim(e.m) {
			l.back = slices.Delete(back, i, i+1)
			return e, true
		}
	}
	if c.version != q.version { // search from the beginning
		c.version, c.cursors = q.version, [priorities]uint64{}
	}
	pos := &c.cursors[p]
	*pos = max(*pos, l.First)
	for ; *pos != l.Next; *pos++ {
		if e := l.At(*pos); e.m != nil && c.claim(e.m) {
			return l.Take(*pos), true
		}
	}
	return entry{}, false
}

// giveBack returns messages to their places in the queue.
func (q *Queue) giveBack(entries []entry) {
	q.mu.Lock()
	if q.gone {
		q.mu.Unlock()
		for _, e := range entries {
			q.shrink(1, e.m.size())
		}
		return
	}
	var notifies []func()
	for _, e := range entries {
		l := q.level(e.m)
		at, _ := slices.BinarySearchFunc(l.back, e.seq, func(x entry, seq uint64) int {
			return cmp.Compare(seq, x.seq) // the oldest is last
		})
		l.back = slices.Insert(l.back, at, e)
		q.counts.Returned++
		if notify := q.waiter(e.m); notify != nil {
			notifies = append(notifies, notify)
		}
	}
	q.mu.Unlock()
	for _, notify := range notifies {
		notify()
	}
}

// shrink accounts for n removed messages. It may run inside the queue's lock.
func (q *Queue) shrink(n, bytes int64) {
	q.size.Add(-n)
	q.bytes.Add(-bytes)
	q.dest.store.Return(bytes)
}

// hasRoom reports whether the queue is below its limits, and the broker has memory.
func (q *Queue) hasRoom() bool {
	s := q.dest.store
	return q.size.Load() < s.cfg.Limit && q.bytes.Load() < s.cfg.LimitBytes && !s.Full() && !s.Tight()
}

// Room implements [Sink]. Expired messages take no room: a consumer that drops them may never come.
func (q *Queue) Room() bool {
	if q.hasRoom() {
		return true
	}
	q.expire()
	if q.dest.store.Tight() {
		q.dest.store.reclaimMemory()
	}
	return q.hasRoom()
}

func (q *Queue) noteExpiry(m *Message) {
	if m.Expires != 0 && (q.soonest == 0 || m.Expires < q.soonest) {
		q.soonest = m.Expires
	}
}

// expire removes the expired messages of a queue. It takes a twentieth of the time at most.
func (q *Queue) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	begun := time.Now()
	now := begun.UnixMilli()
	if q.soonest == 0 || q.soonest > now || begun.Before(q.searched) {
		return
	}
	q.soonest = 0
	n, bytes := q.sweep(func(m *Message) bool {
		expired := m.Expired(&now)
		if !expired {
			q.noteExpiry(m)
		}
		return expired
	})
	q.counts.Expired += uint64(n) //nolint:gosec // a count
	q.searched = time.Now().Add(20 * time.Since(begun))
	q.shrink(n, bytes)
}

// notifyConsumers notifies all waiting consumers to search the queue again.
func (q *Queue) notifyConsumers() {
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

// sweep removes the expired messages, or all if expired is nil, and returns number and size; q.mu is held. Delayed
// messages and unsettled deliveries stay.
func (q *Queue) sweep(expired func(*Message) bool) (n, bytes int64) {
	removed := func(e entry) bool {
		if e.m == nil || expired != nil && !expired(e.m) {
			return false
		}
		n++
		bytes += e.m.size()
		return true
	}
	for _, l := range q.levels {
		if l == nil {
			continue
		}
		for pos := l.First; l.Live > 0 && pos != l.Next; pos = max(pos+1, l.First) {
			if removed(*l.At(pos)) {
				l.Take(pos)
			}
		}
		l.back = slices.DeleteFunc(l.back, removed)
	}
	return n, bytes
}

// Subscription describes a subscription of a topic.
type Subscription struct {
	// Name identifies a subscription of the topic, which consumers with the same name share; empty: a private one.
	Name string
	// Exclusive limits the subscription to one consumer at a time.
	Exclusive bool
	// Durable keeps the subscription without consumers.
	Durable  bool
	Selector string // the text of Filter
	Filter   Filter
}

// ErrInUse means that a subscription has consumers.
var ErrInUse = errors.New("the subscription is in use")

// Subscribe adds a consumer to a subscription of a topic. A new subscription gets messages sent from then on. notify is
// as in [Queue.Consume]. Subscribe fails with [ErrInUse], [ErrNoMemory] or [ErrLongName].
func (s *Store) Subscribe(topic string, sub Subscription, notify func()) (*Consumer, error) {
	if len(sub.Name) > maxName {
		return nil, ErrLongName
	}
	d, err := s.Open(driver.Destination{Kind: driver.Topic, Name: topic})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.queues() {
		if sub.Name == "" || q.name != sub.Name {
			continue
		}
		same := q.selector == sub.Selector && q.exclusive == sub.Exclusive
		switch {
		case q.inUse() && (!same || q.exclusive):
			return nil, ErrInUse
		case same:
			return q.Consume(nil, notify)
		}
		q.drop() // as in JMS, a subscription with another selector replaces it
	}
	if s.overfull() {
		return nil, ErrNoMemory
	}
	q := &Queue{
		dest: d, name: sub.Name, exclusive: sub.Exclusive, durable: sub.Durable, filter: sub.Filter,
		selector: sub.Selector,
	}
	c, err := q.Consume(nil, notify)
	if err != nil {
		return nil, err
	}
	subs := append(slices.Clone(*d.subs.Load()), q)
	d.subs.Store(&subs)
	s.Charge(q.ownSize())
	return c, nil
}

// FindSubscription returns a subscription of any topic, or nil.
func (s *Store) FindSubscription(name string) (found *Queue) {
	s.each(func(d *Destination) {
		for _, q := range d.queues() {
			if d.addr.Kind == driver.Topic && q.name == name {
				found = q
			}
		}
	})
	return found
}

// Topic returns the topic of the subscription.
func (q *Queue) Topic() string { return q.dest.addr.Name }

func (q *Queue) inUse() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.consumers) > 0
}

// Remove removes a subscription and its messages. It fails with [ErrInUse]. Consumers join with the lock of the topic
// held, so that none joins a removed queue.
func (q *Queue) Remove() error {
	d := q.dest
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.inUse() {
		return ErrInUse
	}
	q.drop()
	return nil
}

// drop removes a subscription. The caller holds the lock of its topic.
func (q *Queue) drop() {
	subs := slices.DeleteFunc(slices.Clone(*q.dest.subs.Load()), func(x Sink) bool { return x == q })
	q.dest.subs.Store(&subs)
	if q.end() {
		q.dest.store.Return(q.ownSize())
	}
}

// ownSize is the accounted memory of a subscription without its messages, in bytes.
func (q *Queue) ownSize() int64 {
	return subscriptionSize + int64(len(q.name)+len(q.selector))
}

// end deletes the messages; the queue takes no more. It returns whether this is the first call.
func (q *Queue) end() (first bool) {
	q.mu.Lock()
	first = !q.gone
	q.gone = true
	n, bytes := q.sweep(nil)
	q.mu.Unlock()
	q.delayed.Stop(func(e entry) {
		n++
		bytes += e.m.size()
	})
	q.shrink(n, bytes)
	return first
}

// Delayed holds items until they are due. It is safe for concurrent use.
type Delayed[T any] struct {
	mu      sync.Mutex
	heap    dueItems[T]
	seq     uint64
	timer   *time.Timer
	firing  bool // due items are being handed over
	stopped bool
}

type dueItem[T any] struct {
	item T
	at   int64  // nanoseconds since the Unix epoch
	seq  uint64 // keeps items of one time in order
}

type dueItems[T any] []dueItem[T]

func (h dueItems[T]) Len() int { return len(h) }
func (h dueItems[T]) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h dueItems[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueItems[T]) Push(x any)   { *h = append(*h, x.(dueItem[T])) }
func (h *dueItems[T]) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = dueItem[T]{}
	*h = (*h)[:last]
	return d
}

// Add schedules a call of due with the item. It returns false after Stop.
func (d *Delayed[T]) Add(at int64, item T, due func(T)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return false
	}
	d.seq++
	heap.Push(&d.heap, dueItem[T]{item, at, d.seq})
	if d.heap[0].seq == d.seq && !d.firing {
		d.arm(due)
	}
	return true
}

func (d *Delayed[T]) arm(due func(T)) {
	if d.timer != nil {
		d.timer.Stop()
	}
	wait := max(0, time.Until(time.Unix(0, d.heap[0].at)))
	d.timer = time.AfterFunc(wait, func() { d.fire(due) })
}

// fire hands over the due items, in order.
func (d *Delayed[T]) fire(due func(T)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.firing { // a timer fired while it was replaced
		return
	}
	d.firing = true
	for now := time.Now().UnixNano(); len(d.heap) > 0 && d.heap[0].at <= now; {
		item := heap.Pop(&d.heap).(dueItem[T]).item
		d.mu.Unlock()
		due(item)
		d.mu.Lock()
	}
	if d.firing = false; len(d.heap) > 0 {
		d.arm(due)
	}
}

// Stop stops the timer and calls f for each remaining item.
func (d *Delayed[T]) Stop(f func(T)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.heap {
		f(x.item)
	}
	d.stopped, d.heap = true, nil
	if d.timer != nil {
		d.timer.Stop()
	}
}

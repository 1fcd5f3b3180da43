package rocketmq

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// What a topic, one of its queues and a group count against the broker's memory, in bytes.
const (
	topicSize = 1 << 10
	queueSize = 256
	groupSize = 512
)

// topic is a topic of RocketMQ: logs that are a [store.Sink] of the store's topic of the same name.
type topic struct {
	s      *Server
	name   string
	id     int64 // its place in the server's list
	dest   *store.Destination
	detach func()
	gone   atomic.Bool

	queues atomic.Pointer[[]*queue]
	inUse  atomic.Int32 // how many of them clients may use
	turn   atomic.Uint32

	size, bytes atomic.Int64  // of the messages held
	own         atomic.Int64  // bytes of the topic itself in the account of the broker's memory
	dropped     atomic.Uint64 // for lack of room, that a group was not done with or that no group has seen
	later       store.Delayed[*message]
	room        store.Waiters
	tried       atomic.Int64 // when trimNowAndThen trimmed, in nanoseconds since the Unix epoch

	mu     sync.Mutex // for what follows, and changes of queues
	bridge *bridge    // nil: none
}

// setQueues changes the number of queues. What is in queues beyond it stays there, out of reach.
func (t *topic) setQueues(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queues := append([]*queue(nil), *t.queues.Load()...)
	for len(queues) < n {
		queues = append(queues, &queue{t: t, id: len(queues)})
		t.own.Add(queueSize)
		t.s.store.Charge(queueSize)
	}
	t.queues.Store(&queues)
	t.inUse.Store(int32(n))
}

// nextQueue returns the number of the queue whose turn it is.
func (t *topic) nextQueue() int { return int(t.turn.Add(1) % uint32(max(1, t.inUse.Load()))) }

// queue returns a queue by its number, nil if there is none.
func (t *topic) queue(id int64) *queue {
	queues := *t.queues.Load()
	if id < 0 || id >= int64(len(queues)) {
		return nil
	}
	return queues[id]
}

// Put implements [store.Sink].
func (t *topic) Put(m *store.Message) {
	c, ok := m.Content.(*message)
	if !ok {
		c = convert(m, t.name)
	}
	t.put(c, m.NotBefore)
}

// put stores a message, or keeps it until its time has come.
func (t *topic) put(m *message, notBefore int64) {
	weight := m.weight()
	size, bytes := t.size.Add(1), t.bytes.Add(weight)
	t.s.store.Charge(weight)
	now := time.Now()
	if notBefore > now.UnixNano() {
		t.later.Add(notBefore, m, func(m *message) { t.append(m, time.Now().UnixMilli()) })
	} else {
		t.append(m, now.UnixMilli())
	}
	if size >= t.s.limits.Limit || bytes >= t.s.limits.LimitBytes {
		t.trim()
	}
	if t.gone.Load() {
		t.forget()
	}
}

// forget takes the topic off the account of memory. The last user of a deleted topic calls it.
func (t *topic) forget() {
	t.size.Store(0)
	t.s.store.Return(t.bytes.Swap(0) + t.own.Swap(0))
}

func (t *topic) append(m *message, at int64) {
	queues := *t.queues.Load()
	i := m.queue
	if i < 0 || i >= len(queues) {
		i = t.nextQueue()
	}
	offset := queues[i].push(m, at)
	if m.place.Load() == 0 {
		m.place.CompareAndSwap(0, offset+1)
	}
}

// full tells whether the limits are reached, or the topic is to behave as if they were.
func (t *topic) full() bool { return t.atLimit() || t.s.store.Full() || t.s.store.Tight() }

func (t *topic) atLimit() bool {
	return t.size.Load() >= t.s.limits.Limit || t.bytes.Load() >= t.s.limits.LimitBytes
}

// stuffed tells whether the topic is full even without the messages that it may drop.
func (t *topic) stuffed() bool {
	if !t.full() {
		return false
	}
	t.trimNowAndThen()
	return t.full()
}

// Room implements [store.Sink].
func (t *topic) Room(notify func()) bool {
	if notify == nil {
		return !t.stuffed()
	}
	if !t.full() {
		return true
	}
	t.room.Add(t.s.store, t.stuffed, notify)
	return false
}

// TellRoom calls the waiters for room.
func (t *topic) TellRoom() { t.room.Tell() }

// keptShare is the part of the limits up to which messages stay that all groups have done with, for groups to come.
const keptShare = 8

// excess returns how many messages must go for the topic to hold no more than limit messages and so many bytes.
func (t *topic) excess(limit, limitBytes int64) int64 {
	size, bytes := t.size.Load(), t.bytes.Load()
	n := size - limit
	if over := bytes - limitBytes; over > 0 && size > 0 {
		n = max(n, over/max(1, bytes/size)+1)
	}
	return n
}

// end takes the topic off the store and lets all pulls go.
func (t *topic) end() {
	t.mu.Lock()
	t.gone.Store(true)
	detach, b := t.detach, t.bridge
	t.mu.Unlock()
	detach()
	if b != nil {
		t.s.ending.Go(b.close)
	}
	t.later.Stop(func(*message) {})
	for _, q := range *t.queues.Load() {
		q.wakeAll()
	}
	t.forget()
	t.room.Tell()
}

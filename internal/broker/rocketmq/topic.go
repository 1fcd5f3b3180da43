package rocketmq

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// The accounted memory of topics, queues and groups, in bytes.
const (
	topicSize = 1 << 10
	queueSize = 256
	groupSize = 512
)

// topic is a topic of RocketMQ: a number of logs, and a [store.Sink] of the store's topic of the same name.
type topic struct {
	s      *Server
	name   string
	id     int64 // in Server.byID
	dest   *store.Destination
	detach func()
	gone   atomic.Bool

	queues atomic.Pointer[[]*queue]
	turn   atomic.Uint32

	size, bytes atomic.Int64 // of the messages
	own         atomic.Int64 // accounted memory without messages, in bytes
	delayed     store.Delayed[*message]
	room        store.Waiters
	trimmed     atomic.Int64 // the last trim by full, in nanoseconds since the Unix epoch

	mu     sync.Mutex // for the next field, and changes of queues
	bridge *bridge    // nil: none
}

// addQueues adds queues, if there are fewer than n.
func (t *topic) addQueues(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queues := append([]*queue(nil), *t.queues.Load()...)
	for len(queues) < n {
		queues = append(queues, &queue{t: t, id: len(queues)})
		t.own.Add(queueSize)
		t.s.store.Charge(queueSize)
	}
	t.queues.Store(&queues)
}

// nextQueue returns the numbers of the queues in turn.
func (t *topic) nextQueue() int { return int(t.turn.Add(1) % uint32(len(*t.queues.Load()))) }

// queue returns a queue by its number, or nil.
func (t *topic) queue(id int64) *queue {
	queues := *t.queues.Load()
	if id < 0 || id >= int64(len(queues)) {
		return nil
	}
	return queues[id]
}

func (t *topic) Put(m *store.Message) {
	c, ok := m.Content.(*message)
	if !ok {
		c = convert(m, t.name)
	}
	t.put(c, m.NotBefore)
}

// put stores a message at once or with its delay.
func (t *topic) put(m *message, notBefore int64) {
	weight := m.weight()
	size, bytes := t.size.Add(1), t.bytes.Add(weight)
	t.s.store.Charge(weight)
	now := time.Now()
	if notBefore > now.UnixNano() {
		t.delayed.Add(notBefore, m, func(m *message) { t.append(m, time.Now().UnixMilli()) })
	} else {
		t.append(m, now.UnixMilli())
	}
	if size >= t.s.limits.Limit || bytes >= t.s.limits.LimitBytes {
		t.trim()
	}
	if t.gone.Load() {
		t.free()
	}
}

// free returns the topic's memory. Late users of a deleted topic call it again.
func (t *topic) free() {
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

// hasRoom reports whether the topic is below its limits, and the broker has room.
func (t *topic) hasRoom() bool {
	return t.size.Load() < t.s.limits.Limit && t.bytes.Load() < t.s.limits.LimitBytes &&
		!t.s.store.Full() && !t.s.store.Tight()
}

// full reports whether there is no room, even after a trim; it trims at most once a second.
func (t *topic) full() bool {
	if t.hasRoom() {
		return false
	}
	now := time.Now().UnixNano()
	if last := t.trimmed.Load(); now-last >= int64(time.Second) && t.trimmed.CompareAndSwap(last, now) {
		t.trim()
	}
	return !t.hasRoom()
}

func (t *topic) Room(notify func()) bool {
	if notify == nil {
		return !t.full()
	}
	if t.hasRoom() {
		return true
	}
	t.room.Add(t.s.store, t.full, notify)
	return false
}

// keptShare is the part of the limits kept for future groups.
const keptShare = 8

// excess returns the number of messages beyond limit messages or limitBytes.
func (t *topic) excess(limit, limitBytes int64) int64 {
	size, bytes := t.size.Load(), t.bytes.Load()
	n := size - limit
	if over := bytes - limitBytes; over > 0 && size > 0 {
		n = max(n, over/max(1, bytes/size)+1)
	}
	return n
}

// end detaches the topic from the store and wakes all pulls.
func (t *topic) end() {
	t.mu.Lock()
	t.gone.Store(true)
	detach, b := t.detach, t.bridge
	t.mu.Unlock()
	detach()
	if b != nil {
		b.consume(false)
	}
	t.delayed.Stop(func(*message) {})
	for _, q := range *t.queues.Load() {
		q.mu.Lock()
		q.wakeAll()
	}
	t.free()
	t.room.Notify()
}

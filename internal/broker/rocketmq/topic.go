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

	queues      atomic.Pointer[[]*queue]
	read, write atomic.Int32 // how many of them clients may use
	turn        atomic.Uint32

	size, bytes atomic.Int64  // of the messages held
	own         atomic.Int64  // bytes of the topic itself in the account of the broker's memory
	stored      atomic.Uint64 // messages ever
	dropped     atomic.Uint64 // for lack of room, that a group was not done with or that no group has seen
	later       delayed

	mu       sync.Mutex // for what follows, and changes of queues
	bridge   *bridge    // nil: none
	room     []func()
	roomTold time.Time // when so many waited for room that all were told, for those to go who are not there any more
	watcher  *time.Timer
	watched  bool
	wantRoom atomic.Bool
	tried    atomic.Int64 // when a sender that does not wait had it trimmed, in nanoseconds since the Unix epoch
}

// setQueues changes the number of queues. What is in queues beyond it stays there, out of reach.
func (t *topic) setQueues(read, write int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queues := append([]*queue(nil), *t.queues.Load()...)
	for len(queues) < max(read, write) {
		queues = append(queues, &queue{t: t, id: len(queues)})
		t.own.Add(queueSize)
		t.s.store.Charge(queueSize)
	}
	t.queues.Store(&queues)
	t.read.Store(int32(read))
	t.write.Store(int32(write))
}

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
	t.stored.Add(1)
	weight := m.weight()
	size, bytes := t.size.Add(1), t.bytes.Add(weight)
	t.s.store.Charge(weight)
	now := time.Now()
	if notBefore > now.UnixNano() {
		t.later.add(t, m, notBefore)
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
		i = int(t.turn.Add(1) % uint32(max(1, t.write.Load())))
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

// crowd is how many may wait for room before all are told now and then: those who still want to know ask again, and
// those whose connections have ended are forgotten.
const crowd = 256

// Room implements [store.Sink].
func (t *topic) Room(notify func()) bool {
	if !t.full() {
		return true
	}
	if notify == nil {
		t.trimNowAndThen()
		return !t.full()
	}
	t.mu.Lock()
	t.room = append(t.room, notify)
	t.wantRoom.Store(true)
	t.watch()
	tooMany := len(t.room) > crowd && time.Since(t.roomTold) > time.Second
	if tooMany {
		t.roomTold = time.Now()
	}
	t.mu.Unlock()
	if t.s.store.Tight() {
		t.s.store.AwaitMemory(t)
	}
	switch {
	case !t.full(): // it may have emptied before wantRoom was seen
		t.TellRoom()
	case tooMany:
		go t.TellRoom() // not here: it calls the caller
	}
	return false
}

// TellRoom calls the waiters for room.
func (t *topic) TellRoom() {
	t.mu.Lock()
	room := t.room
	t.room = nil
	t.wantRoom.Store(false)
	t.mu.Unlock()
	for _, notify := range room {
		notify()
	}
}

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
	if t.watcher != nil {
		t.watcher.Stop()
	}
	t.mu.Unlock()
	detach()
	if b != nil {
		t.s.ending.Go(b.close)
	}
	t.later.stop()
	for _, q := range *t.queues.Load() {
		q.wakeAll()
	}
	t.forget()
	t.TellRoom()
}

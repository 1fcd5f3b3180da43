package rocketmq

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
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

	size, bytes atomic.Int64  // of what is held
	stored      atomic.Uint64 // messages ever
	dropped     atomic.Uint64 // for lack of room, not seen by any group
	later       delayed

	mu       sync.Mutex // for what follows, and changes of queues
	bridge   *bridge    // nil: none
	room     []func()
	wantRoom atomic.Bool
}

// setQueues changes the number of queues. What is in queues beyond it stays there, out of reach.
func (t *topic) setQueues(read, write int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queues := append([]*queue(nil), *t.queues.Load()...)
	for len(queues) < max(read, write) {
		queues = append(queues, &queue{t: t, id: len(queues)})
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
	size, bytes := t.size.Add(1), t.bytes.Add(m.weight())
	now := time.Now()
	if notBefore > now.UnixNano() {
		t.later.add(t, m, notBefore)
	} else {
		t.append(m, now.UnixMilli())
	}
	if size > t.s.limits.Limit || bytes > t.s.limits.LimitBytes {
		t.trim()
	}
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

// full tells whether the limits are reached.
func (t *topic) full() bool {
	return t.size.Load() >= t.s.limits.Limit || t.bytes.Load() >= t.s.limits.LimitBytes || t.s.store.Full()
}

// Room implements [store.Sink].
func (t *topic) Room(notify func()) bool {
	if !t.full() {
		return true
	}
	if notify == nil {
		return false
	}
	t.mu.Lock()
	t.room = append(t.room, notify)
	t.wantRoom.Store(true)
	t.mu.Unlock()
	if !t.full() { // it may have emptied before wantRoom was seen
		t.TellRoom()
	}
	return false
}

// TellRoom calls those who wait for room.
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

// trim drops what all groups have done with as far as that is more than is kept. Beyond the limits, where no group has a
// claim, it drops the oldest.
func (t *topic) trim() {
	limits := &t.s.limits
	n := t.excess(limits.Limit/keptShare, limits.LimitBytes/keptShare)
	if n <= 0 {
		return
	}
	listening := t.s.listening(t.name)
	queues := *t.queues.Load()
	claimed := false
	for pass := range 2 { // evenly; then what is left from wherever it is
		share := n
		if pass == 0 {
			share = (n + int64(len(queues)) - 1) / int64(len(queues))
		}
		for _, q := range queues {
			done, held := q.free(listening)
			claimed = claimed || held
			if drop := min(done, share, n); held && drop > 0 {
				n -= t.drop(q, drop)
			}
		}
	}
	if !claimed {
		t.dropOldest(queues)
	}
	if t.wantRoom.Load() && t.excess(limits.Limit*7/8, limits.LimitBytes*7/8) <= 0 && !t.s.store.Full() {
		t.TellRoom()
	}
}

// dropOldest makes room in a topic that nobody listens to, a bit more than needed so as not to be called for each message.
func (t *topic) dropOldest(queues []*queue) {
	const slack = 64
	limits := &t.s.limits
	if t.excess(limits.Limit, limits.LimitBytes) <= 0 {
		return
	}
	n := max(1, t.excess(limits.Limit-limits.Limit/slack, limits.LimitBytes-limits.LimitBytes/slack))
	for n > 0 {
		share, before := (n+int64(len(queues))-1)/int64(len(queues)), n
		for _, q := range queues {
			dropped := t.drop(q, min(share, n))
			t.dropped.Add(uint64(dropped))
			n -= dropped
		}
		if n == before {
			return // all the rest is delayed
		}
	}
}

func (t *topic) drop(q *queue, n int64) int64 {
	dropped, bytes := q.drop(n)
	t.size.Add(-dropped)
	t.bytes.Add(-bytes)
	return dropped
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
	t.later.stop()
	for _, q := range *t.queues.Load() {
		q.wakeAll()
	}
	t.size.Store(0)
	t.bytes.Store(0)
	t.TellRoom()
}

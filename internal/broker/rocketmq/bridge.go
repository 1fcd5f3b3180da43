package rocketmq

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// bridge joins a topic to the queue of the same name that other protocols use. Towards the queue it is a [store.Sink]
// of the topic: what is sent over RocketMQ goes there as well while other protocols consume from it, as if the queue
// were one more group. The other way it is one of the competing consumers of the queue, for all groups together,
// while there are groups that listen to the topic.
type bridge struct {
	t     *topic
	queue *store.Queue
	own   atomic.Int32 // intakes that are not closed: consumers of the queue that are ours

	mu sync.Mutex
	in *intake // nil while no client listens
}

// intake is the way in.
type intake struct {
	t      *topic
	c      *store.Consumer
	moving sync.WaitGroup

	mu      sync.Mutex
	running bool // messages are being moved
	again   bool // there may be more
	ended   bool
}

// join makes the bridge of a topic, if there is need of it, and opens or closes its way in.
func (s *Server) join(name string) {
	if strings.HasPrefix(name, wire.RetryPrefix) || strings.HasPrefix(name, wire.DeadPrefix) {
		return
	}
	t := s.findTopic([]byte(name))
	if t == nil || s.store.Find(store.Address{Kind: store.KindQueue, Name: name}) == nil {
		return
	}
	listened := len(s.claims(name).listening) > 0
	t.mu.Lock()
	if t.bridge == nil && !t.gone.Load() {
		b := &bridge{t: t, queue: s.store.Queue(name)}
		t.bridge = b
		detach, off := t.detach, t.dest.Attach(b)
		t.detach = func() { detach(); off() }
	}
	b := t.bridge
	t.mu.Unlock()
	switch {
	case b == nil:
	case listened:
		b.open()
	default:
		s.ending.Go(b.close) // it may wait for the end of a stall
	}
}

func (b *bridge) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.in != nil || b.t.gone.Load() {
		return
	}
	foreign := func(m *store.Message) bool { _, own := m.Content.(*message); return !own }
	in := &intake{t: b.t}
	in.mu.Lock() // until there is a consumer to move from
	defer in.mu.Unlock()
	b.own.Add(1)
	c, err := b.queue.Consume(foreign, in.kick)
	if err != nil {
		b.own.Add(-1)
		return // the queue was deleted
	}
	b.in, in.c, in.running = in, c, true
	in.moving.Go(in.move)
}

// close ends the way in; messages that were not moved stay in the queue.
func (b *bridge) close() {
	b.mu.Lock()
	in := b.in
	b.in = nil
	b.mu.Unlock()
	if in == nil {
		return
	}
	in.mu.Lock()
	in.ended = true
	in.mu.Unlock()
	in.moving.Wait()
	in.c.Close(false)
	b.own.Add(-1)
}

// kick moves the messages there are. It does not wait.
func (in *intake) kick() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.again = in.running; in.running || in.ended {
		return
	}
	in.running = true
	in.moving.Go(in.move)
}

// move moves messages from the queue to the topic as long as there are some and there is room.
func (in *intake) move() {
	var buf [64]store.Delivery
	for {
		n := 0
		if in.t.Room(in.kick) {
			n = in.c.Take(buf[:])
		}
		for i := range n {
			in.t.Put(buf[i].Message)
		}
		if n > 0 {
			in.c.AcceptThrough(buf[n-1].ID)
		}
		clear(buf[:n])
		in.mu.Lock()
		if in.ended || n == 0 && !in.again {
			in.running = false
			in.mu.Unlock()
			return
		}
		in.again = false
		in.mu.Unlock()
	}
}

// others tells whether anybody but us consumes from the queue.
func (b *bridge) others() bool {
	return b.queue.Stats().Consumers > int(b.own.Load())
}

// Put implements [store.Sink].
func (b *bridge) Put(m *store.Message) {
	if _, own := m.Content.(*message); own && b.others() {
		b.queue.Put(m)
	}
}

// Room implements [store.Sink].
func (b *bridge) Room(notify func()) bool { return !b.others() || b.queue.Room(notify) }

package rocketmq

import (
	"sync"
	"sync/atomic"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// bridge joins a topic to the queue of other protocols of the same name. As a [store.Sink] of the topic it stores
// messages sent over RocketMQ in the queue while other protocols consume from it, as if the queue were another group.
// As a competing consumer of the queue it moves messages to the topic, for all groups, while groups subscribe to it.
type bridge struct {
	t     *topic
	queue *store.Queue
	own   atomic.Int32 // our consumers of the queue: open intakes

	mu sync.Mutex
	in *intake // nil while no group subscribes
}

// intake moves messages from the queue to the topic.
type intake struct {
	t      *topic
	c      *store.Consumer
	moving sync.WaitGroup

	mu      sync.Mutex
	running bool // a goroutine moves messages
	again   bool // notified since
	ended   bool
}

// updateBridge creates the bridge of a topic, if there is a queue, and opens or closes its intake.
func (s *Server) updateBridge(name string) {
	if ofGroup(name) {
		return
	}
	t := s.findTopic([]byte(name))
	if t == nil || s.store.Find(store.Address{Kind: store.KindQueue, Name: name}) == nil {
		return
	}
	subscribed := len(s.claims(name).subscribed) > 0
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
	case subscribed:
		b.open()
	default:
		s.ending.Go(b.close) // may wait for the end of a stall
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
	in.mu.Lock() // notify waits for in.c
	defer in.mu.Unlock()
	b.own.Add(1)
	c, err := b.queue.Consume(foreign, in.notify)
	if err != nil {
		b.own.Add(-1)
		return // the queue was deleted
	}
	b.in, in.c, in.running = in, c, true
	in.moving.Go(in.move)
}

// close ends the intake; messages not moved stay in the queue.
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

// notify starts to move messages. It does not block.
func (in *intake) notify() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.again = in.running; in.running || in.ended {
		return
	}
	in.running = true
	in.moving.Go(in.move)
}

// move moves messages from the queue to the topic while there are messages and room.
func (in *intake) move() {
	var buf [64]store.Delivery
	for {
		n := 0
		if in.t.Room(in.notify) {
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

// others reports whether the queue has other consumers.
func (b *bridge) others() bool {
	return b.queue.Stats().Consumers > int(b.own.Load())
}

func (b *bridge) Put(m *store.Message) {
	if _, own := m.Content.(*message); own && b.others() {
		b.queue.Put(m)
	}
}

func (b *bridge) Room(notify func()) bool { return !b.others() || b.queue.Room(notify) }

// NotifyRoom implements [store.Sink]. The queue's destination notifies the waiters.
func (b *bridge) NotifyRoom() {}

package rocketmq

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/pkg/driver"
)

// bridge joins a topic to the queue of other protocols of the same name. As a [store.Sink] of the topic it stores
// messages sent over RocketMQ in the queue while other protocols consume from it, as if the queue were another group.
// As a competing consumer of the queue it moves messages to the topic, for all groups, while groups subscribe to it.
type bridge struct {
	t     *topic
	queue *store.Queue
	own   atomic.Int32 // our consumers of the queue

	mu   sync.Mutex
	stop chan struct{} // ends our consumer; nil while no group subscribes
}

// updateBridge creates the bridge of a topic, if there is a queue, and starts or stops its consumer.
func (s *Server) updateBridge(name string) {
	if ofGroup(name) {
		return
	}
	t := s.findTopic([]byte(name))
	if t == nil || s.store.Find(driver.Destination{Kind: driver.Queue, Name: name}) == nil {
		return
	}
	subscribed := slices.Contains(slices.Collect(maps.Values(s.claims(name))), true)
	t.mu.Lock()
	if t.bridge == nil && !t.gone.Load() {
		b := &bridge{t: t, queue: s.store.Queue(name)}
		t.bridge = b
		detach, off := t.detach, t.dest.Attach(b)
		t.detach = func() { detach(); off() }
	}
	b := t.bridge
	t.mu.Unlock()
	if b != nil {
		b.consume(subscribed)
	}
}

// consume starts or stops our consumer. Messages not moved stay in the queue.
func (b *bridge) consume(wanted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case wanted && b.stop == nil && !b.t.gone.Load():
		foreign := func(m *store.Message) bool { _, own := m.Content.(*message); return !own }
		wake := make(chan struct{}, 1)
		b.own.Add(1)
		c, err := b.queue.Consume(foreign, func() { store.Signal(wake) })
		if err != nil {
			b.own.Add(-1)
			return // no memory
		}
		stop := make(chan struct{})
		b.stop = stop
		b.t.s.ending.Go(func() {
			b.move(c, wake, stop)
			c.Close(false)
			b.own.Add(-1)
		})
	case !wanted && b.stop != nil:
		close(b.stop)
		b.stop = nil
	}
}

// move moves messages from the queue to the topic while there are messages and room.
func (b *bridge) move(c *store.Consumer, wake, stop chan struct{}) {
	var buf [64]store.Delivery
	for {
		n := 0
		if b.t.Room(func() { store.Signal(wake) }) {
			n = c.Take(buf[:])
		}
		for i := range n {
			b.t.Put(buf[i].Message)
		}
		if n > 0 {
			c.AcceptThrough(buf[n-1].ID)
			store.Signal(wake) // there may be more
		}
		clear(buf[:n])
		select {
		case <-stop:
			return
		case <-wake:
		}
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

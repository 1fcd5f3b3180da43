package mem

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Depth implements [driver.Admin].
func (d *memDriver) Depth(ctx context.Context, dest driver.Destination, subscription string) (uint64, error) {
	b, err := d.reach(ctx, "count the messages of "+dest.String())
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var n uint64
	b.eachQueue(dest, func(q *queue) {
		if subscription == "" || q.name == subscription {
			n += q.depth()
		}
	})
	return n, nil
}

// Inspect implements [driver.Inspector].
func (d *memDriver) Inspect(
	ctx context.Context, destinations []driver.Destination,
) (list []driver.DestinationCount, err error) {
	b, err := d.reach(ctx, "ask the broker for its counters")
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, dest := range destinations {
		n := driver.NoDestination()
		b.eachQueue(dest, func(q *queue) {
			n.Depth.N += q.depth()
			n.Consumers.N += uint64(q.consumers) //nolint:gosec // a number of consumers
		})
		if d := b.destinations[dest]; d != nil {
			d.mu.Lock()
			n.Added.N, n.Acknowledged = d.added, driver.Count{}
			d.mu.Unlock()
		}
		list = append(list, n)
	}
	return list, nil
}

// Purge implements [driver.Admin]. Messages already sent to consumers stay with them.
func (d *memDriver) Purge(ctx context.Context, dest driver.Destination) (uint64, error) {
	b, err := d.reach(ctx, "purge "+dest.String())
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var n uint64
	b.eachQueue(dest, func(q *queue) {
		n += uint64(q.items.len()) //nolint:gosec // a length
		q.items.clear()
		q.dest.freed()
	})
	b.purged += n
	return n, nil
}

// reach returns the broker, through a connection of its own.
func (d *memDriver) reach(ctx context.Context, op string) (*Broker, error) {
	c, err := d.dialAny(ctx, op, nil)
	if err != nil {
		return nil, err
	}
	c.broker.forget(c)
	return c.broker, nil
}

// eachQueue calls f for the queues of a destination, with its lock. b.mu is held.
func (b *Broker) eachQueue(dest driver.Destination, f func(*queue)) {
	d := b.destinations[dest]
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.queues {
		f(q)
	}
}

// Subscriptions returns how many subscriptions a topic has.
func (b *Broker) Subscriptions(topic string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	b.eachQueue(driver.Destination{Kind: driver.Topic, Name: topic}, func(*queue) { n++ })
	return n
}

// Message is a message as the broker stores it.
type Message struct {
	Time       int64
	ID         driver.ID
	Body       []byte
	Properties []driver.Property
	Group      string
	Priority   int // 0 to 9
	Persistent bool
	Text       bool
	TTL        time.Duration // 0: never expires
}

// Tap sees all messages that are stored at a destination, consumed or not. Its methods are safe for concurrent use.
type Tap struct {
	mu   sync.Mutex
	seen []Message
}

// Tap begins to watch a destination. It never stops: it is for tests.
func (b *Broker) Tap(dest driver.Destination) *Tap {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.destination(dest)
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &Tap{}
	d.taps = append(d.taps, t)
	return t
}

func (t *Tap) see(it *item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = append(t.seen, Message{
		Time: it.time, ID: it.id, Body: it.body, Properties: it.properties, Group: it.group, Priority: int(it.priority),
		Persistent: it.persistent, Text: it.text, TTL: it.ttl,
	})
}

// Messages returns the messages seen so far, in the order of arrival.
func (t *Tap) Messages() []Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.seen)
}

package store

import (
	"errors"
	"slices"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Subscription describes a subscription of a topic.
type Subscription struct {
	// Name identifies a subscription of the topic; consumers with the same name share it. Empty is a private subscription.
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
		dest: d, name: sub.Name, exclusive: sub.Exclusive, durable: sub.Durable, filter: sub.Filter, selector: sub.Selector,
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
	q.end()
}

// ownSize is the accounted memory of a subscription without its messages, in bytes.
func (q *Queue) ownSize() int64 {
	return subscriptionSize + int64(len(q.name)+len(q.selector))
}

// end deletes the messages of a subscription; it takes no more.
func (q *Queue) end() {
	q.mu.Lock()
	again := q.gone
	q.gone = true
	n, bytes := q.sweep(nil)
	q.mu.Unlock()
	if !again {
		q.dest.store.Return(q.ownSize())
	}
	q.delayed.Stop(func(e entry) {
		n++
		bytes += e.m.size()
	})
	q.shrink(n, bytes)
	q.room.Notify()
}

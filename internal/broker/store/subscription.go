package store

import (
	"errors"
	"slices"
)

// Subscription describes a subscription of a topic.
type Subscription struct {
	// Name tells it from others of the topic; consumers that give the same name share it. Empty makes one for the
	// caller alone.
	Name string
	// Durable ones stay when their last consumer leaves.
	Durable bool
	// Selector is the text of Filter. A durable subscription that is asked for with another one begins anew, as in JMS
	// (Jakarta Messaging 3.1, section 8.3.3).
	Selector string
	Filter   Filter
}

// The errors of subscriptions.
var (
	ErrInUse   = errors.New("the subscription has consumers")
	ErrUnknown = errors.New("there is no such subscription")
)

// Subscribe returns a subscription of a topic with a consumer on it; the subscription is made if need be, and gets
// messages sent from then on. notify is as in [Queue.Consume]. It fails with [ErrInUse], [ErrNoMemory] or
// [ErrLongName].
func (s *Store) Subscribe(topic string, sub Subscription, notify func()) (*Consumer, error) {
	if len(sub.Name) > maxName {
		return nil, ErrLongName
	}
	d, err := s.Open(Address{KindTopic, topic})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	subs := *d.subs.Load()
	room := !s.overfull()
	if sub.Name != "" {
		for i, x := range subs {
			q, ok := x.(*Queue)
			if !ok || q.name != sub.Name {
				continue
			}
			if q.selector == sub.Selector {
				return q.Consume(nil, notify)
			}
			if q.inUse() {
				return nil, ErrInUse
			}
			q.end()
			subs = slices.Delete(slices.Clone(subs), i, i+1)
			room = true // that of the old one
			break
		}
	}
	if !room {
		return nil, ErrNoMemory
	}
	q := &Queue{dest: d, name: sub.Name, durable: sub.Durable, filter: sub.Filter, selector: sub.Selector}
	c, err := q.Consume(nil, notify)
	if err != nil {
		return nil, err
	}
	subs = append(slices.Clone(subs), q)
	d.subs.Store(&subs)
	s.Charge(q.ownSize())
	return c, nil
}

// Unsubscribe removes a subscription and its messages. It fails with [ErrInUse] or [ErrUnknown].
func (s *Store) Unsubscribe(topic, name string) error {
	d := s.Find(Address{KindTopic, topic})
	if d == nil {
		return ErrUnknown
	}
	for _, q := range d.queues() {
		if q.name == name {
			return d.remove(q)
		}
	}
	return ErrUnknown
}

// UnsubscribeAnywhere is Unsubscribe without a topic. Of several it takes any.
func (s *Store) UnsubscribeAnywhere(name string) error {
	found := ErrUnknown
	s.each(func(d *Destination) {
		if d.addr.Kind == KindTopic && errors.Is(found, ErrUnknown) {
			found = s.Unsubscribe(d.addr.Name, name)
		}
	})
	return found
}

func (q *Queue) inUse() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.consumers) > 0
}

// abandon removes a subscription that is not durable when its last consumer has left.
func (d *Destination) abandon(q *Queue) {
	if !q.durable {
		_ = d.remove(q) // ErrInUse: another consumer is there, or has just come
	}
}

// remove takes a subscription off its topic unless it has consumers. New ones join with d's lock held,
// so that none joins a queue that is being removed.
func (d *Destination) remove(q *Queue) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.inUse() {
		return ErrInUse
	}
	subs := slices.DeleteFunc(slices.Clone(*d.subs.Load()), func(x Sink) bool { return x == q })
	d.subs.Store(&subs)
	q.end()
	return nil
}

// ownSize is the memory that a subscription counts without its messages, in bytes. A queue counts with its destination.
func (q *Queue) ownSize() int64 {
	if q.dest.addr.Kind == KindQueue {
		return 0
	}
	return subscriptionSize + int64(len(q.name)+len(q.selector))
}

// end empties a queue for good.
func (q *Queue) end() {
	q.mu.Lock()
	again := q.gone
	q.gone = true
	q.mu.Unlock()
	if !again {
		q.dest.store.Return(q.ownSize())
	}
	q.purge()
	q.room.Tell()
}

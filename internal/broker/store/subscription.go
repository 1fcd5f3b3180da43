package store

import (
	"errors"
	"slices"
)

// Subscription says what a subscription of a topic is to be.
type Subscription struct {
	// Name tells it from others of the topic; consumers that give the same name share it. Empty makes one for the caller alone.
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

// Subscribe returns a subscription of a topic with a consumer on it; the subscription is made if need be, and gets what is
// sent from then on. notify is as in [Queue.Consume].
func (s *Store) Subscribe(topic string, sub Subscription, notify func()) (*Consumer, error) {
	d := s.Destination(Address{KindTopic, topic})
	d.mu.Lock()
	defer d.mu.Unlock()
	subs := *d.subs.Load()
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
			break
		}
	}
	q := &Queue{dest: d, name: sub.Name, durable: sub.Durable, filter: sub.Filter, selector: sub.Selector}
	c, err := q.Consume(nil, notify)
	if err != nil {
		return nil, err
	}
	subs = append(slices.Clone(subs), q)
	d.subs.Store(&subs)
	return c, nil
}

// Unsubscribe removes a subscription and what it holds. It fails with [ErrInUse] or [ErrUnknown].
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

// end empties a queue for good.
func (q *Queue) end() {
	q.mu.Lock()
	q.gone = true
	q.mu.Unlock()
	q.purge()
	q.tellRoom()
}

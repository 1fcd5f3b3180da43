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
	// Exclusive ones have one consumer at a time.
	Exclusive bool
	// Durable ones stay when their last consumer leaves.
	Durable bool
	// Selector is the text of Filter. A subscription that is asked for with another one, or for other use, begins anew,
	// as in JMS (Jakarta Messaging 3.1, section 8.3.3).
	Selector string
	Filter   Filter
}

// ErrInUse says that a subscription has consumers.
var ErrInUse = errors.New("the subscription is in use")

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
			same := q.selector == sub.Selector && q.exclusive == sub.Exclusive
			if q.inUse() && (!same || q.exclusive) {
				return nil, ErrInUse
			}
			if same {
				return q.Consume(nil, notify)
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
	q := &Queue{
		dest: d, name: sub.Name, exclusive: sub.Exclusive, durable: sub.Durable, filter: sub.Filter, selector: sub.Selector,
	}
	c, err := q.Consume(nil, notify)
	if err != nil {
		return nil, err
	}
	subs = append(slices.Clone(subs), q)
	d.subs.Store(&subs)
	s.Charge(q.ownSize())
	return c, nil
}

// FindSubscription returns the subscription with that name, of any topic; nil if there is none.
func (s *Store) FindSubscription(name string) (found *Queue) {
	s.each(func(d *Destination) {
		for _, q := range d.queues() {
			if d.addr.Kind == KindTopic && q.name == name {
				found = q
			}
		}
	})
	return found
}

// Remove removes a subscription and its messages. It fails with [ErrInUse].
func (q *Queue) Remove() error { return q.dest.remove(q) }

// Address returns the queue, or the topic of the subscription.
func (q *Queue) Address() Address { return q.dest.addr }

// Exclusive is as in [Subscription].
func (q *Queue) Exclusive() bool { return q.exclusive }

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

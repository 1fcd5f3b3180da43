package mem

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Message is a message as the broker stores it.
type Message struct {
	Time int64
	ID   driver.ID
	driver.Variant
	Persistent  bool
	TTL         time.Duration // 0: never expires
	redelivered bool
	due         time.Duration // earliest delivery; 0 for at once
	expires     time.Duration // 0 for never
}

// fifo is a list with a fast way to remove its head. It never shrinks. The zero value is empty.
type fifo[T any] struct {
	buf  []T
	head int
}

// list returns the elements, for use until the next change.
func (f *fifo[T]) list() []T { return f.buf[f.head:] }

func (f *fifo[T]) insert(i int, v T) {
	if f.head > len(f.buf)/2 && len(f.buf) == cap(f.buf) {
		f.buf, f.head = append(f.buf[:0], f.list()...), 0
	}
	f.buf = slices.Insert(f.buf, f.head+i, v)
}

func (f *fifo[T]) remove(i int) T {
	v := f.list()[i]
	if i > 0 {
		f.buf = slices.Delete(f.buf, f.head+i, f.head+i+1)
	} else if f.head++; f.head == len(f.buf) {
		f.buf, f.head = f.buf[:0], 0
	}
	return v
}

// destination is a queue, or a topic with one queue per subscription.
type destination struct {
	*Broker
	queues []*queue
	held   *Message // by Options.Reorder, to be overtaken
	taps   []*[]Message
	added  uint64
}

// queue holds the messages of a queue or of a subscription: messages of higher priority first, messages of equal
// priority in their order. Consumers take from it.
type queue struct {
	dest     *destination
	key      string   // of a subscription that several consumers can have, at once or one after the other
	selector selector // of the subscription
	durable  bool
	choosy   bool // there have been groups, selectors, or consumers with several workers
	items    fifo[Message]
	groups   map[string]*consumer // the owners of message groups
	members  []*consumer
	arrived  *sync.Cond // there may be a message for a consumer
}

// add adds a queue.
func (d *destination) add(q *queue) *queue {
	q.dest, q.groups, q.arrived = d, map[string]*consumer{}, sync.NewCond(&d.mu)
	d.queues = append(d.queues, q)
	return q
}

// full reports whether a queue holds as many messages as it may.
func (d *destination) full() bool {
	limit := d.options.Limit
	return limit > 0 && slices.ContainsFunc(d.queues, func(q *queue) bool { return len(q.items.list()) >= limit })
}

// put adds a message to all matching queues.
func (d *destination) put(it *Message) {
	d.added++
	for _, seen := range d.taps {
		*seen = append(*seen, *it)
	}
	for _, q := range d.queues {
		if !selects(q.selector, it) {
			continue
		}
		list := q.items.list()
		i := len(list)
		for i > 0 && list[i-1].Priority < it.Priority {
			i--
		}
		q.items.insert(i, *it)
		q.choosy = q.choosy || it.Group != ""
		q.notify()
	}
}

// release puts the held message into the queues, and reports whether there was one.
func (d *destination) release() bool {
	held := d.held
	if d.held = nil; held != nil {
		d.put(held)
	}
	return held != nil
}

// notify wakes a consumer if there are messages; all of them if not each consumer may take each message.
func (q *queue) notify() {
	if q.choosy {
		q.arrived.Broadcast()
	} else if len(q.items.list()) > 0 {
		q.arrived.Signal()
	}
}

// take moves messages to a consumer, as many as it has credit for, but no more than its share.
func (q *queue) take(c *consumer) {
	n := min(c.spec.Credit-c.unsettled, (len(q.items.list())+len(q.members)-1)/len(q.members))
	for i := 0; n > 0 && i < len(q.items.list()); {
		if it := &q.items.list()[i]; !selects(c.selector, it) || !q.owns(c, it.Group) {
			i++
			continue
		}
		it := q.items.remove(i)
		c.ahead.insert(len(c.ahead.list()), it)
		c.line.received.Add(int64(len(it.Body)))
		c.unsettled++
		n--
	}
	if len(c.ahead.list()) > 0 {
		q.dest.changed.Broadcast() // there is room
		q.notify()
	}
}

// owns reports whether the messages of a group go to c. A group without an owner is assigned to c.
func (q *queue) owns(c *consumer, group string) bool {
	if group == "" {
		return true
	}
	if q.groups[group] == nil {
		q.groups[group] = c
	}
	return q.groups[group] == c
}

// giveBack returns messages, in their order, to the head.
func (q *queue) giveBack(redelivered bool, items ...Message) {
	for _, it := range slices.Backward(items) {
		it.redelivered = it.redelivered || redelivered
		list, i := q.items.list(), 0
		for i < len(list) && list[i].Priority > it.Priority {
			i++
		}
		q.items.insert(i, it)
		q.notify()
	}
}

// selector is the supported part of JMS selectors, name = 'value'; nil selects all.
type selector *driver.Property

func parseSelector(s string) (selector, error) {
	if s == "" {
		return nil, nil
	}
	parts := regexp.MustCompile(`^\s*([^ =<>']+)\s*=\s*'([^']*)'\s*$`).FindStringSubmatch(s)
	if parts == nil {
		return nil, fmt.Errorf("selector %q: only name = 'value' is understood", s)
	}
	return &driver.Property{Key: parts[1], Value: parts[2]}, nil
}

func selects(s selector, m *Message) bool { return s == nil || slices.Contains(m.Properties, *s) }

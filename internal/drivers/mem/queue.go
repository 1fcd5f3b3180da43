package mem

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// item is a message in the broker.
type item struct {
	body        []byte
	time        int64
	id          driver.ID
	properties  []driver.Property
	group       string
	priority    uint8
	persistent  bool
	text        bool
	redelivered bool
	due         int64         // earliest delivery; 0 for at once
	expires     int64         // 0 for never
	ttl         time.Duration // requested by the producer
}

// Priorities of JMS and AMQP.
const (
	numPriorities   = 10
	defaultPriority = 4
)

// destination is a queue, with a single permanent queue, or a topic, with one queue per subscription. Its lock covers
// them all.
type destination struct {
	mu      sync.Mutex
	queues  []*queue
	waiting []*producer // for room
	held    *heldItem   // by Options.Reorder
	added   uint64
	taps    []*Tap
}

// heldItem is a message held back to be overtaken.
type heldItem struct {
	item
	timer *time.Timer
}

// queue holds the messages of a queue or of a subscription. Consumers take from it.
type queue struct {
	dest      *destination
	permanent bool // not a subscription
	key       string
	name      string // of the subscription
	durable   bool
	selector  selector // of the subscription
	items     shelf
	consumers int
	choosy    int                  // number of members with selectors of their own
	groups    map[string]*consumer // the owners of message groups; nil until there is one
	members   []*consumer
	idle      []*consumer // members waiting for messages
}

// room reports whether all queues have room for one message. d.mu is held, as in all methods below except flushHeld.
func (d *destination) room(limit int) bool { return d.roomFor(1, limit) }

// roomFor reports whether all queues have room for n messages.
func (d *destination) roomFor(n, limit int) bool {
	if limit > 0 {
		for _, q := range d.queues {
			if q.items.len()+n > limit {
				return false
			}
		}
	}
	return true
}

// put appends a message to all matching queues, and reports whether there was one.
func (d *destination) put(it *item) (routed bool) {
	d.added++
	for _, t := range d.taps {
		t.see(it)
	}
	for _, q := range d.queues {
		if q.selector == nil || q.selector.matches(it.properties) {
			if it.group != "" && q.groups == nil {
				q.groups = map[string]*consumer{}
			}
			q.items.push(it)
			q.wake()
			routed = true
		}
	}
	return routed
}

// hold keeps a message back until the next message or the end of wait.
func (d *destination) hold(it *item, wait time.Duration) {
	h := &heldItem{item: *it}
	h.timer = time.AfterFunc(wait, func() { d.flushHeld(h) })
	d.held = h
}

// release puts the held message into the queues, and reports whether there was one.
func (d *destination) release() bool {
	h := d.held
	if h == nil {
		return false
	}
	h.timer.Stop()
	d.held = nil
	d.put(&h.item)
	return true
}

// flushHeld puts h if it is still held; any held message if h is nil.
func (d *destination) flushHeld(h *heldItem) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h == nil || d.held == h {
		d.release()
	}
}

// freed wakes all senders that wait for room.
func (d *destination) freed() {
	for i, p := range d.waiting {
		signal(p.space)
		d.waiting[i] = nil
	}
	d.waiting = d.waiting[:0]
}

// wake wakes one consumer; all of them if they may select different messages.
func (q *queue) wake() {
	for len(q.idle) > 0 {
		c := q.idle[0]
		q.idle = slices.Delete(q.idle, 0, 1)
		signal(c.wake)
		if q.choosy == 0 && q.groups == nil {
			return
		}
	}
}

// wakeOthers passes a signal on to a consumer that does not take.
func (q *queue) wakeOthers() {
	q.dest.mu.Lock()
	defer q.dest.mu.Unlock()
	if q.items.len() > 0 {
		q.wake()
	}
}

// take moves up to n messages, but no more than the consumer's share, into c.batch.
func (q *queue) take(c *consumer, n int) {
	c.batch, c.next = c.batch[:0], 0
	if c.selector == nil && q.groups == nil {
		for range min(n, (q.items.len()+q.consumers-1)/max(q.consumers, 1)) {
			c.batch = append(c.batch, q.items.pop())
		}
	} else {
		q.items.sift(func(it *item) bool {
			if len(c.batch) >= n || c.selector != nil && !c.selector.matches(it.properties) || !q.owns(c, it.group) {
				return false
			}
			c.batch = append(c.batch, *it)
			return true
		})
	}
	if len(c.batch) > 0 {
		c.unsettled.Add(int64(len(c.batch)))
		c.conn.sentAhead(c.batch)
		q.dest.freed()
		if q.items.len() > 0 {
			q.wake()
		}
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

// leave removes a consumer: the message groups that it owned get another owner.
func (q *queue) leave(c *consumer) {
	q.consumers--
	if c.selector != nil {
		q.choosy--
	}
	q.members = slices.DeleteFunc(q.members, func(k *consumer) bool { return k == c })
	maps.DeleteFunc(q.groups, func(_ string, k *consumer) bool { return k == c })
	if q.items.len() > 0 {
		q.wake()
	}
}

// depth returns the number of messages, including messages sent to consumers and not settled.
func (q *queue) depth() uint64 {
	n := int64(q.items.len())
	for _, c := range q.members {
		n += c.unsettled.Load()
	}
	return uint64(max(n, 0)) //nolint:gosec // not below 0
}

// giveBack returns items, in their order, to the head.
func (q *queue) giveBack(items []item) {
	for i := len(items) - 1; i >= 0; i-- {
		q.items.pushFront(&items[i])
	}
	if len(items) > 0 {
		q.wake()
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // it already has a signal
	}
}

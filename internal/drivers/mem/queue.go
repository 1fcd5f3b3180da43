package mem

import (
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
	due         int64 // not to be delivered before; 0 for at once
	expires     int64 // 0 for never
	redelivered bool
}

// destination is a queue, which has one queue for good, or a topic, which has one per subscription. Its lock covers
// them all.
type destination struct {
	mu      sync.Mutex
	queues  []*queue
	waiting []*producer // for room
	held    *heldItem   // by Options.Reorder
}

// heldItem waits to be overtaken.
type heldItem struct {
	item
	timer *time.Timer
}

// queue is what consumers take from.
type queue struct {
	dest      *destination
	permanent bool // not a subscription
	key       string
	durable   bool
	selector  selector // of the subscription
	items     ring[item]
	consumers int
	choosy    int         // how many of them have selectors of their own
	idle      []*consumer // waiting for messages
}

// room tells whether all queues can take one more. d.mu is held, as in all methods below but flushHeld.
func (d *destination) room(limit int) bool {
	if limit > 0 {
		for _, q := range d.queues {
			if q.items.len() >= limit {
				return false
			}
		}
	}
	return true
}

// put appends it to all queues that want it, and tells whether there was any.
func (d *destination) put(it *item) (routed bool) {
	for _, q := range d.queues {
		if q.selector == nil || q.selector.matches(it.properties) {
			q.items.push(it)
			q.wake()
			routed = true
		}
	}
	return routed
}

// hold keeps it back until the next message or the end of wait.
func (d *destination) hold(it *item, wait time.Duration) {
	h := &heldItem{item: *it}
	h.timer = time.AfterFunc(wait, func() { d.flushHeld(h) })
	d.held = h
}

// release puts what is held, and tells whether there was anything.
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

// flushHeld puts h if it is still held; any, if h is nil.
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

// wake makes one consumer look; all of them where some are choosy, as it is not known whom the message suits.
func (q *queue) wake() {
	for len(q.idle) > 0 {
		c := q.idle[0]
		q.idle = slices.Delete(q.idle, 0, 1)
		signal(c.wake)
		if q.choosy == 0 {
			return
		}
	}
}

// take moves up to the consumer's credit, but no more than its share, into c.batch.
func (q *queue) take(c *consumer) {
	c.batch, c.next = c.batch[:0], 0
	n := min(c.credit, (q.items.len()+q.consumers-1)/max(q.consumers, 1))
	if c.selector == nil {
		for range n {
			c.batch = append(c.batch, q.items.pop())
		}
	} else {
		for range q.items.len() { // once around: what does not match goes back to its place
			it := q.items.pop()
			if len(c.batch) < c.credit && c.selector.matches(it.properties) {
				c.batch = append(c.batch, it)
			} else {
				q.items.push(&it)
			}
		}
	}
	if len(c.batch) > 0 {
		q.dest.freed()
		if q.items.len() > 0 {
			q.wake()
		}
	}
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
	default: // it has one already
	}
}

package mem

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// item is a message in the broker.
type item struct {
	Message
	redelivered bool
	due         int64 // earliest delivery; 0 for at once
	expires     int64 // 0 for never
}

// fifo is a list with a fast way to remove its head. It never shrinks. The zero value is empty.
type fifo[T any] struct {
	buf  []T
	head int
}

func (f *fifo[T]) len() int { return len(f.buf) - f.head }

// list returns the elements, for use until the next change.
func (f *fifo[T]) list() []T { return f.buf[f.head:] }

func (f *fifo[T]) insert(i int, v T) {
	if f.head > len(f.buf)/2 && len(f.buf) == cap(f.buf) {
		f.keep(f.len())
	}
	f.buf = slices.Insert(f.buf, f.head+i, v)
}

// pop removes the head, which must exist.
func (f *fifo[T]) pop() T {
	var zero T
	v := f.buf[f.head]
	f.buf[f.head] = zero
	if f.head++; f.head == len(f.buf) {
		f.keep(0)
	}
	return v
}

// keep moves the first n elements to the front, and removes the others.
func (f *fifo[T]) keep(n int) {
	copy(f.buf, f.buf[f.head:f.head+n])
	clear(f.buf[n:])
	f.buf, f.head = f.buf[:n], 0
}

// destination is a queue, with a single permanent queue, or a topic, with one queue per subscription. Its lock covers
// them all.
type destination struct {
	stats   Stats // but for the present values
	mu      sync.Mutex
	queues  []*queue
	roomier chan struct{} // closed when there may be room; nil unless somebody waits for that
	held    *heldItem     // by Options.Reorder
	taps    []*Tap
	added   uint64
}

// heldItem is a message held back to be overtaken.
type heldItem struct {
	item
	timer *time.Timer
}

// queue holds the messages of a queue or of a subscription: messages of higher priority first, messages of equal
// priority in their order. Consumers take from it.
type queue struct {
	dest      *destination
	permanent bool // not a subscription
	key       string
	name      string // of the subscription
	durable   bool
	selector  selector // of the subscription
	items     fifo[item]
	groups    map[string]*consumer // the owners of message groups; nil until there is one
	members   []*consumer
	idle      []*consumer // members waiting for messages
}

// room reports whether all queues have room for n messages. d.mu is held, as in all methods below except flushHeld.
func (d *destination) room(n, limit int) bool {
	return limit == 0 || !slices.ContainsFunc(d.queues, func(q *queue) bool { return q.items.len()+n > limit })
}

// put adds a message to all matching queues.
func (d *destination) put(it *item) {
	d.added++
	for _, t := range d.taps {
		t.mu.Lock()
		t.seen = append(t.seen, it.Message)
		t.mu.Unlock()
	}
	for _, q := range d.queues {
		if !q.selector.matches(it.Properties) {
			continue
		}
		if it.Group != "" && q.groups == nil {
			q.groups = map[string]*consumer{}
		}
		list := q.items.list()
		i := len(list)
		for i > 0 && list[i-1].Priority < it.Priority {
			i--
		}
		q.items.insert(i, *it)
		q.wake()
	}
}

// hold keeps a message back until the next message, or for a time if none comes.
func (d *destination) hold(it *item) {
	h := &heldItem{item: *it}
	h.timer = time.AfterFunc(100*time.Millisecond, func() { d.flushHeld(h) })
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
	if d.roomier != nil {
		close(d.roomier)
		d.roomier = nil
	}
}

// wake wakes one consumer if there are messages; all of them if they may select different messages.
func (q *queue) wake() {
	for q.items.len() > 0 && len(q.idle) > 0 {
		c := q.idle[0]
		q.idle = slices.Delete(q.idle, 0, 1)
		signal(c.wake)
		if q.groups == nil && !slices.ContainsFunc(q.members, func(c *consumer) bool { return c.selector != nil }) {
			return
		}
	}
}

// take moves up to n messages, but no more than the consumer's share, into c.batch.
func (q *queue) take(c *consumer, n int) {
	c.batch, c.next = c.batch[:0], 0
	if c.selector == nil && q.groups == nil {
		for range min(n, (q.items.len()+len(q.members)-1)/max(len(q.members), 1)) {
			c.batch = append(c.batch, q.items.pop())
		}
	} else {
		list := q.items.list()
		left := list[:0]
		for i := range list {
			if it := &list[i]; len(c.batch) < n && c.selector.matches(it.Properties) && q.owns(c, it.Group) {
				c.batch = append(c.batch, *it)
			} else {
				left = append(left, *it)
			}
		}
		q.items.keep(len(left))
	}
	if len(c.batch) > 0 {
		c.unsettled.Add(int64(len(c.batch)))
		for i := range c.batch {
			c.line.down.Add(int64(len(c.batch[i].Body)))
		}
		q.dest.freed()
		q.wake()
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
	q.members = slices.DeleteFunc(q.members, func(k *consumer) bool { return k == c })
	maps.DeleteFunc(q.groups, func(_ string, k *consumer) bool { return k == c })
	q.wake()
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
	for _, it := range slices.Backward(items) {
		i := slices.IndexFunc(q.items.list(), func(other item) bool { return other.Priority <= it.Priority })
		if i < 0 {
			i = q.items.len()
		}
		q.items.insert(i, it)
	}
	q.wake()
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // it already has a signal
	}
}

// selector is the supported part of JMS selectors: name = 'value', joined by AND. All must match.
type selector []driver.Property

func parseSelector(s string) (sel selector, err error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	for term := range strings.SplitSeq(s, " AND ") {
		parts := regexp.MustCompile(`^\s*([^ =<>']+)\s*=\s*'([^']*)'\s*$`).FindStringSubmatch(term)
		if parts == nil {
			return nil, fmt.Errorf("selector %q: only name = 'value', joined by AND, is understood", s)
		}
		sel = append(sel, driver.Property{Key: parts[1], Value: parts[2]})
	}
	return sel, nil
}

func (s selector) matches(properties []driver.Property) bool {
	for _, want := range s {
		if !slices.Contains(properties, want) {
			return false
		}
	}
	return true
}

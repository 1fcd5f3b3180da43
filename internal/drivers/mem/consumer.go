package mem

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

const defaultCredit = 1000

// consumer takes batches of at most its credit from a queue; the next when the last has been settled.
type consumer struct {
	broker   *Broker
	conn     *conn
	queue    *queue
	selector selector
	credit   int
	op       string
	keep     bool
	wake     chan struct{}
	batch    []item
	next     int // of batch
	timer    *time.Timer
	delivery driver.Delivery
	tally    tally
	input    *driver.Meter // waits for messages
	closed   bool
}

func (b *Broker) newConsumer(c *conn, spec driver.ConsumerSpec, op string) (*consumer, error) {
	sel, err := parseSelector(spec.Selector)
	if err != nil {
		return nil, &driver.Error{Class: driver.ClassUnsupported, Op: op, Hint: "simplify --selector", Err: err}
	}
	named := spec.Durable || spec.Shared
	if named && (spec.Subscription == "" || spec.Destination.Kind != driver.Topic) {
		return nil, driver.Errorf(driver.ClassUnsupported, op, "name the subscription, and use topic://NAME",
			"durable and shared subscriptions have a name and are on topics")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.destination(spec.Destination)
	d.mu.Lock()
	defer d.mu.Unlock()
	k := &consumer{
		broker: b, conn: c, credit: spec.Credit, op: fmt.Sprintf("receive from %s", spec.Destination),
		input: driver.NewMeter(), keep: spec.KeepSubscription, wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour),
	}
	k.timer.Stop()
	if k.credit <= 0 {
		k.credit = defaultCredit
	}
	if spec.Destination.Kind == driver.Queue {
		k.queue, k.selector = d.queues[0], sel
	} else if k.queue, err = d.subscribe(spec, sel, op); err != nil {
		return nil, err
	}
	k.queue.consumers++
	if k.selector != nil {
		k.queue.choosy++
	}
	b.tallies[&k.tally] = struct{}{}
	b.consumers++
	return k, nil
}

// subscribe finds or makes the queue of a subscription. d.mu is held.
func (d *destination) subscribe(spec driver.ConsumerSpec, sel selector, op string) (*queue, error) {
	q := &queue{dest: d, durable: spec.Durable, selector: sel}
	if spec.Durable || spec.Shared {
		q.key = fmt.Sprintf("%t %s %s", spec.Shared, spec.Connection.ClientID, spec.Subscription)
		for _, known := range d.queues {
			if known.key != q.key {
				continue
			}
			if known.consumers > 0 && !spec.Shared {
				return nil, driver.Errorf(driver.ClassOther, op, "use another client ID or subscription name",
					"the subscription %s is in use", spec.Subscription)
			}
			return known, nil
		}
	}
	d.queues = append(d.queues, q)
	return q, nil
}

// Run delivers until ctx ends or the connection is lost.
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	for ctx.Err() == nil {
		if c.conn.dead.Load() {
			return c.conn.lostError(c.op)
		}
		if c.next == len(c.batch) && !c.refill(ctx) || !c.ripe(ctx) {
			continue
		}
		it := &c.batch[c.next]
		if it.expires > 0 && c.broker.now() >= it.expires {
			c.next++
			c.tally.add(expired)
			continue
		}
		c.delivery = driver.Delivery{Time: it.time, HasTime: true, ID: it.id, Body: it.body, Redelivered: it.redelivered}
		c.tally.add(delivered)
		if it.redelivered {
			c.tally.add(redelivered)
		}
		verdict := deliver(&c.delivery)
		if verdict == driver.Release {
			c.release(it)
			continue
		}
		if c.conn.dead.Load() { // too late to settle: it goes back
			it.redelivered = true
			return c.conn.lostError(c.op)
		}
		c.tally.add(acknowledged)
		it.body = nil
		c.next++
	}
	return nil
}

// release puts a message back to where it came from.
func (c *consumer) release(it *item) {
	again := *it
	again.redelivered = true
	it.body = nil
	c.next++
	c.tally.add(returned)
	c.queue.dest.mu.Lock()
	defer c.queue.dest.mu.Unlock()
	c.queue.giveBack([]item{again})
}

// refill waits for messages. When it returns false there may be none.
func (c *consumer) refill(ctx context.Context) bool {
	q := c.queue
	q.dest.mu.Lock()
	q.take(c)
	if len(c.batch) > 0 {
		q.dest.mu.Unlock()
		return true
	}
	q.idle = append(q.idle, c)
	q.dest.mu.Unlock()
	c.input.Begin()
	defer c.input.End()
	select {
	case <-c.wake:
		return false
	case <-ctx.Done():
	case <-c.conn.lost:
	}
	q.dest.mu.Lock()
	defer q.dest.mu.Unlock()
	q.leaveIdle(c)
	return false
}

// leaveIdle passes on a signal that came too late.
func (q *queue) leaveIdle(c *consumer) {
	n := len(q.idle)
	q.idle = slices.DeleteFunc(q.idle, func(k *consumer) bool { return k == c })
	if len(q.idle) == n && q.items.len() > 0 {
		q.wake()
	}
}

// ripe tells whether the next message may be delivered now; if not it waits.
func (c *consumer) ripe(ctx context.Context) bool {
	f, due := c.broker.faults.Load(), c.batch[c.next].due
	if f == nil && due == 0 {
		return true
	}
	now := c.broker.now()
	due = max(now, due)
	var replaced chan struct{}
	if f != nil {
		due, replaced = f.afterStall(due), f.replaced
	}
	if due == now {
		return true
	}
	c.input.Begin()
	defer c.input.End()
	c.timer.Reset(time.Duration(due - now))
	defer c.timer.Stop()
	select {
	case <-c.timer.C:
	case <-replaced:
	case <-ctx.Done():
	case <-c.conn.lost:
	}
	return false
}

// Waits implements [driver.Waiter].
func (c *consumer) Waits() driver.Waits { return driver.Waits{Input: c.input.Idle()} }

// Probe implements [driver.Prober]: a stalled broker answers after its stall.
func (c *consumer) Probe(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if c.conn.dead.Load() {
			return c.conn.lostError(c.op)
		}
		f := c.broker.faults.Load()
		if f == nil {
			return nil
		}
		now := c.broker.now()
		wait := f.afterStall(now) - now
		if wait <= 0 {
			return nil
		}
		timer.Reset(time.Duration(wait))
		select {
		case <-timer.C:
		case <-f.replaced:
		case <-c.conn.lost:
		case <-ctx.Done():
			return driver.Errorf(driver.ClassTimeout, c.op, "", "the broker did not answer: %w", ctx.Err())
		}
	}
}

// Close returns what was taken but not settled, and ends the subscription unless it is to be kept.
func (c *consumer) Close(context.Context) error {
	b, q := c.broker, c.queue
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	d := q.dest
	d.mu.Lock()
	defer d.mu.Unlock()
	q.consumers--
	if c.selector != nil {
		q.choosy--
	}
	rest := c.batch[c.next:]
	c.tally.n[returned].Add(uint64(len(rest)))
	q.giveBack(rest)
	c.batch, c.next = nil, 0
	kept := q.durable && (c.keep || c.conn.dead.Load())
	if !q.permanent && q.consumers == 0 && !kept {
		d.queues = slices.DeleteFunc(d.queues, func(k *queue) bool { return k == q })
		d.freed()
	}
	b.retire(&c.tally)
	b.consumers--
	return nil
}

package mem

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

const defaultCredit = 1000

// consumer takes batches of at most its credit from a queue; the next batch when the last has been settled.
type consumer struct {
	*conn
	lease    *transport.Lease[*conn]
	spec     driver.ConsumerSpec
	queue    *queue
	selector selector
	op       string
	maxBody  int
	wake     chan struct{}
	settled  chan struct{} // signalled when a worker has settled a message
	input    *driver.Meter // waits for messages
	closed   atomic.Bool

	unsettled atomic.Int64 // number of messages taken and not settled

	fetching chan struct{} // of capacity one: one worker takes a message at a time, synctest knows no waits for a mutex
	batch    []item
	next     int // index in batch

	settling sync.Mutex // one worker settles at a time
	tx       []item     // messages delivered in the open transaction
	back     []item     // delivered but unsettled messages, to be given back when the consumer closes
}

func newConsumer(lease *transport.Lease[*conn], spec driver.ConsumerSpec, op string, maxBody int) (*consumer, error) {
	sel, err := parseSelector(spec.Selector)
	if err != nil {
		return nil, &driver.Error{Class: driver.ClassUnsupported, Op: op, Hint: "simplify --selector", Err: err}
	}
	if (spec.Durable || spec.Shared) && (spec.Subscription == "" || spec.Destination.Kind != driver.Topic) {
		return nil, driver.Errorf(driver.ClassUnsupported, op, "name the subscription, and use topic://NAME",
			"durable and shared subscriptions have a name and are on topics")
	}
	if spec.Credit <= 0 {
		spec.Credit = defaultCredit
	}
	k := &consumer{
		conn: lease.Conn, lease: lease, spec: spec, op: fmt.Sprintf("receive from %s", spec.Destination), maxBody: maxBody,
		wake: make(chan struct{}, 1), settled: make(chan struct{}, 1), fetching: make(chan struct{}, 1),
		input: driver.NewMeter(),
	}
	b := k.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.destination(spec.Destination)
	d.mu.Lock()
	defer d.mu.Unlock()
	if spec.Destination.Kind == driver.Queue {
		k.queue, k.selector = d.queues[0], sel
	} else if k.queue, err = d.subscribe(spec, sel, op); err != nil {
		return nil, err
	}
	k.queue.members = append(k.queue.members, k)
	return k, nil
}

// subscribe finds or creates the queue of a subscription. d.mu is held.
func (d *destination) subscribe(spec driver.ConsumerSpec, sel selector, op string) (*queue, error) {
	q := &queue{dest: d, name: spec.Subscription, durable: spec.Durable, selector: sel}
	if spec.Durable || spec.Shared {
		q.key = fmt.Sprintf("%t %s %s", spec.Shared, spec.Connection.ClientID, spec.Subscription)
		for _, known := range d.queues {
			if known.key != q.key {
				continue
			}
			if len(known.members) > 0 && !spec.Shared {
				return nil, driver.Errorf(driver.ClassOther, op, "use another client ID or subscription name",
					"the subscription %s is in use", spec.Subscription)
			}
			return known, nil
		}
	}
	d.queues = append(d.queues, q)
	return q, nil
}

// Waits implements [driver.Waiter].
func (c *consumer) Waits() driver.Waits { return driver.Waits{Input: c.input.Idle()} }

// Probe implements [driver.Prober]: a stalled broker answers after its stall.
func (c *consumer) Probe(ctx context.Context) error {
	for {
		if err := c.passes(ctx, c.op); err != nil {
			return err
		}
		wait, replaced := c.broker.wait(0)
		if wait == 0 {
			return nil
		}
		if c.sleep(ctx, wait, replaced); ctx.Err() != nil {
			return driver.Errorf(driver.ClassTimeout, c.op, "", "the broker did not answer: %w", ctx.Err())
		}
	}
}

// Close returns the messages taken but not settled, and ends the subscription unless it is kept.
func (c *consumer) Close(ctx context.Context) error {
	if !c.closed.Swap(true) {
		c.leave()
		c.lease.Release(ctx)
	}
	return nil
}

func (c *consumer) leave() {
	q := c.queue
	d := q.dest
	d.mu.Lock()
	defer d.mu.Unlock()
	q.giveBack(slices.Concat(again(c.tx), c.back, c.batch[c.next:]))
	q.leave(c)
	kept := q.durable && (c.spec.KeepSubscription || c.Dead())
	if !q.permanent && len(q.members) == 0 && !kept {
		d.queues = slices.DeleteFunc(d.queues, func(k *queue) bool { return k == q })
		d.freed()
	}
}

// Run delivers until ctx ends or the connection is lost.
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	workers := max(c.spec.Concurrency, 1)
	failed := make(chan error, workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			if err := c.work(working, deliver); err != nil {
				failed <- err
				stop()
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return c.commit(ctx)
	}
}

// work delivers one message after the other, until ctx ends.
func (c *consumer) work(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	var d driver.Delivery
	for {
		it, ok, err := c.fetch(ctx)
		if !ok {
			return err
		}
		if len(it.Body) > c.maxBody {
			return transport.TooLarge(c.op, "a body of", len(it.Body), c.maxBody)
		}
		d = driver.Delivery{Time: it.Time, HasTime: true, ID: it.ID, Body: it.Body, Redelivered: it.redelivered}
		count(&c.queue.dest.stats.Delivered, 1)
		if it.redelivered {
			count(&c.queue.dest.stats.Redelivered, 1)
		}
		if err := c.settle(ctx, it, deliver(&d)); err != nil {
			return err
		}
		if c.spec.Concurrency > 1 {
			signal(c.settled)
		}
	}
}

// fetch waits for the next message. It returns false when ctx has ended, and for an error.
func (c *consumer) fetch(ctx context.Context) (it item, ok bool, err error) {
	c.fetching <- struct{}{}
	defer func() { <-c.fetching }()
	for ctx.Err() == nil {
		switch {
		case !c.live():
			c.wakeOthers()
			if err := c.passes(ctx, c.op); err != nil && ctx.Err() == nil {
				return it, false, err
			}
		case c.next == len(c.batch):
			if err := c.refill(ctx); err != nil {
				return it, false, err
			}
		case c.ripe(ctx):
			it = c.batch[c.next]
			c.next++
			if it.expires == 0 || c.broker.now() < it.expires {
				return it, true, nil
			}
			c.unsettled.Add(-1)
			count(&c.queue.dest.stats.Expired, 1)
		}
	}
	return it, false, nil
}

// settle settles a delivered message.
func (c *consumer) settle(ctx context.Context, it item, verdict driver.Verdict) error {
	c.settling.Lock()
	defer c.settling.Unlock()
	if err := c.passes(ctx, c.op); err != nil { // too late to settle: it goes back
		c.back = append(c.back, again([]item{it})...)
		return c.onlyIfDead(err)
	}
	if verdict == driver.Accept && c.spec.TransactionSize > 0 {
		if c.tx = append(c.tx, it); len(c.tx) >= c.spec.TransactionSize {
			return c.commit(ctx)
		}
		return nil
	}
	c.unsettled.Add(-1)
	switch verdict {
	case driver.Release:
		c.giveBack([]item{it})
	case driver.Reject:
		count(&c.queue.dest.stats.Refused, 1)
	default:
		count(&c.queue.dest.stats.Acknowledged, 1)
	}
	return nil
}

// onlyIfDead returns err if the connection was lost, and nil if a context has ended.
func (c *consumer) onlyIfDead(err error) error {
	if c.Dead() {
		return err
	}
	return nil
}

// again marks messages for redelivery.
func again(items []item) []item {
	items = slices.Clone(items)
	for i := range items {
		items[i].redelivered = true
	}
	return items
}

// giveBack returns messages to their queue, for redelivery.
func (c *consumer) giveBack(list []item) {
	c.queue.dest.mu.Lock()
	defer c.queue.dest.mu.Unlock()
	c.queue.giveBack(again(list))
}

// commit ends the transaction, unless it is empty. Messages that are rolled back are delivered again.
func (c *consumer) commit(ctx context.Context) error {
	if len(c.tx) == 0 {
		return nil
	}
	began, stats := time.Now(), &c.queue.dest.stats
	refused, at := false, int64(0)
	if f := c.broker.faults.Load(); f != nil {
		refused, at = f.refuses(c.broker.now())
	}
	if wait := at - c.broker.now(); wait > 0 {
		c.sleep(ctx, time.Duration(wait), nil)
	}
	if err := c.passes(ctx, c.op); err != nil {
		stats.committed(c.spec.Commits, began, false)
		return c.onlyIfDead(err)
	}
	c.unsettled.Add(-int64(len(c.tx)))
	if refused {
		c.giveBack(c.tx)
	} else {
		count(&stats.Acknowledged, len(c.tx))
	}
	c.tx = c.tx[:0]
	stats.committed(c.spec.Commits, began, !refused)
	return nil
}

// commitIdle ends a transaction when no messages come and none are being delivered.
func (c *consumer) commitIdle(ctx context.Context) error {
	c.settling.Lock()
	defer c.settling.Unlock()
	if int(c.unsettled.Load()) > len(c.tx) {
		return nil
	}
	return c.commit(ctx)
}

// refill waits for messages. There may be none when it returns.
func (c *consumer) refill(ctx context.Context) error {
	q := c.queue
	q.dest.mu.Lock()
	q.take(c, max(c.spec.Credit-int(c.unsettled.Load()), 0))
	found := len(c.batch) > 0
	if !found {
		q.idle = append(q.idle, c)
	}
	q.dest.mu.Unlock()
	if found {
		return nil
	}
	if err := c.commitIdle(ctx); err != nil {
		return err
	}
	c.input.Begin()
	defer c.input.End()
	select {
	case <-c.wake:
		return nil
	case <-c.settled:
	case <-ctx.Done():
	case <-c.lost:
	}
	q.dest.mu.Lock()
	defer q.dest.mu.Unlock()
	n := len(q.idle)
	if q.idle = slices.DeleteFunc(q.idle, func(k *consumer) bool { return k == c }); len(q.idle) == n {
		q.wake() // pass on the signal that came too late
	}
	return nil
}

// wakeOthers passes a signal on to a consumer that can take.
func (c *consumer) wakeOthers() {
	c.queue.dest.mu.Lock()
	defer c.queue.dest.mu.Unlock()
	c.queue.wake()
}

// ripe reports whether the next message may be delivered now; if not, it waits.
func (c *consumer) ripe(ctx context.Context) bool {
	wait, replaced := c.broker.wait(c.batch[c.next].due)
	if wait > 0 {
		c.input.Begin()
		defer c.input.End()
		c.sleep(ctx, wait, replaced)
	}
	return wait == 0
}

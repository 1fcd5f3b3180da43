package mem

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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
	workers  int           // deliveries at once
	settled  chan struct{} // something was, by a worker

	unsettled atomic.Int64 // of what was taken

	settling sync.Mutex // one worker settles at a time
	size     int        // messages per transaction; 0 for none
	commits  driver.Commits
	tx       []item // delivered in the open transaction
	back     []item // to be given back when the consumer closes: they were delivered, but not settled
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
		workers: spec.Concurrency, settled: make(chan struct{}, 1), size: spec.TransactionSize, commits: spec.Commits,
	}
	k.timer.Stop()
	if k.credit <= 0 {
		k.credit = defaultCredit
	}
	if k.commits == nil {
		k.commits = func(time.Duration, bool) {}
	}
	if spec.Destination.Kind == driver.Queue {
		k.queue, k.selector = d.queues[0], sel
	} else if k.queue, err = d.subscribe(spec, sel, op); err != nil {
		return nil, err
	}
	k.queue.consumers++
	k.queue.members = append(k.queue.members, k)
	if k.selector != nil {
		k.queue.choosy++
	}
	b.tallies[&k.tally] = struct{}{}
	b.consumers++
	return k, nil
}

// subscribe finds or makes the queue of a subscription. d.mu is held.
func (d *destination) subscribe(spec driver.ConsumerSpec, sel selector, op string) (*queue, error) {
	q := &queue{dest: d, name: spec.Subscription, durable: spec.Durable, selector: sel}
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
	var err error
	if c.workers > 1 {
		err = c.runConcurrently(ctx, deliver)
	} else {
		err = c.run(ctx, func(it *item) error { return c.deliver(ctx, it, &c.delivery, deliver) })
	}
	if err == nil {
		err = c.commit(ctx)
	}
	return err
}

// run hands each message that is due to handle, until ctx ends.
func (c *consumer) run(ctx context.Context, handle func(*item) error) error {
	for ctx.Err() == nil {
		if c.conn.state.Load() != connLive {
			c.queue.wakeOthers()
			if err := c.conn.passes(ctx, c.op); err != nil && ctx.Err() == nil {
				return err
			}
			continue
		}
		if c.next == len(c.batch) {
			if ready, err := c.refill(ctx); err != nil {
				return err
			} else if !ready {
				continue
			}
		}
		if !c.ripe(ctx) {
			continue
		}
		it := &c.batch[c.next]
		c.next++
		if it.expires > 0 && c.broker.now() >= it.expires {
			c.unsettled.Add(-1)
			c.tally.add(expired)
			continue
		}
		if err := handle(it); err != nil {
			return err
		}
	}
	return nil
}

// runConcurrently delivers several messages at once.
func (c *consumer) runConcurrently(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	work := make(chan item)
	failed := make(chan error, c.workers)
	var wg sync.WaitGroup
	for range c.workers {
		wg.Go(func() {
			var d driver.Delivery
			for it := range work {
				if err := c.deliver(ctx, &it, &d, deliver); err != nil {
					failed <- err
					return
				}
				signal(c.settled)
			}
		})
	}
	err := c.run(ctx, func(it *item) error {
		select {
		case work <- *it:
			return nil
		case err := <-failed:
			c.next-- // it was not delivered
			return err
		case <-ctx.Done():
			c.next--
			return nil
		}
	})
	close(work)
	wg.Wait()
	if err == nil && len(failed) > 0 {
		err = <-failed
	}
	return err
}

// deliver delivers a message and settles it as the verdict says.
func (c *consumer) deliver(
	ctx context.Context, it *item, d *driver.Delivery, to func(*driver.Delivery) driver.Verdict,
) error {
	*d = driver.Delivery{Time: it.time, HasTime: true, ID: it.id, Body: it.body, Redelivered: it.redelivered}
	c.tally.add(delivered)
	if it.redelivered {
		c.tally.add(redelivered)
	}
	verdict := to(d)
	if c.workers > 1 {
		c.settling.Lock()
		defer c.settling.Unlock()
	}
	if c.conn.state.Load() != connLive {
		if err := c.conn.passes(ctx, c.op); err != nil { // too late to settle: it goes back
			c.back = append(c.back, again(it))
			if c.conn.dead() {
				return err
			}
			return nil
		}
	}
	switch {
	case verdict == driver.Release:
		c.unsettled.Add(-1)
		c.giveBack([]item{again(it)})
	case verdict == driver.Reject:
		c.unsettled.Add(-1)
		c.tally.add(refused)
	case c.size > 0:
		c.tx = append(c.tx, *it)
		if len(c.tx) >= c.size {
			return c.commit(ctx)
		}
	default:
		c.unsettled.Add(-1)
		c.tally.add(acknowledged)
	}
	it.body = nil
	return nil
}

// again is a message as it is delivered once more.
func again(it *item) item {
	more := *it
	more.redelivered = true
	return more
}

// giveBack puts messages back to where they came from.
func (c *consumer) giveBack(list []item) {
	c.tally.n[returned].Add(uint64(len(list)))
	c.queue.dest.mu.Lock()
	defer c.queue.dest.mu.Unlock()
	c.queue.giveBack(list)
}

// commit ends the transaction, if there is anything in it. What is rolled back is delivered again.
func (c *consumer) commit(ctx context.Context) error {
	if len(c.tx) == 0 {
		return nil
	}
	began := time.Now()
	refused, at := false, int64(0)
	if f := c.broker.faults.Load(); f != nil {
		refused, at = f.refuses(c.broker.now())
	}
	if wait := at - c.broker.now(); wait > 0 {
		timer := time.NewTimer(time.Duration(wait))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.conn.lost:
		case <-ctx.Done():
		}
	}
	if err := c.conn.passes(ctx, c.op); err != nil {
		c.tally.add(commitRefused)
		c.commits(time.Since(began), false)
		if c.conn.dead() {
			return err
		}
		return nil
	}
	c.unsettled.Add(-int64(len(c.tx)))
	if refused {
		for i := range c.tx {
			c.tx[i].redelivered = true
		}
		c.giveBack(c.tx)
		c.tally.add(commitRefused)
	} else {
		c.tally.n[acknowledged].Add(uint64(len(c.tx)))
		c.tally.add(committed)
	}
	c.tx = c.tx[:0]
	c.commits(time.Since(began), !refused)
	return nil
}

// commitIdle ends a transaction that waits for messages, as none come and none are being delivered.
func (c *consumer) commitIdle(ctx context.Context) error {
	if c.size == 0 {
		return nil
	}
	c.settling.Lock()
	defer c.settling.Unlock()
	if int(c.unsettled.Load()) > len(c.tx) {
		return nil
	}
	return c.commit(ctx)
}

// refill waits for messages. When it returns false there may be none.
func (c *consumer) refill(ctx context.Context) (ready bool, err error) {
	q := c.queue
	q.dest.mu.Lock()
	if room := c.credit - int(c.unsettled.Load()); room > 0 {
		q.take(c, room)
	} else {
		c.batch, c.next = c.batch[:0], 0
	}
	if len(c.batch) > 0 {
		q.dest.mu.Unlock()
		return true, nil
	}
	q.idle = append(q.idle, c)
	q.dest.mu.Unlock()
	if err := c.commitIdle(ctx); err != nil {
		return false, err
	}
	c.input.Begin()
	defer c.input.End()
	select {
	case <-c.wake:
		return false, nil
	case <-c.settled:
	case <-ctx.Done():
	case <-c.conn.lost:
	}
	q.dest.mu.Lock()
	defer q.dest.mu.Unlock()
	q.leaveIdle(c)
	return false, nil
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
		if err := c.conn.passes(ctx, c.op); err != nil {
			return err
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
	rest := make([]item, 0, len(c.tx)+len(c.back)+len(c.batch))
	for i := range c.tx {
		rest = append(rest, again(&c.tx[i]))
	}
	rest = append(append(rest, c.back...), c.batch[c.next:]...)
	c.tally.n[returned].Add(uint64(len(rest)))
	q.giveBack(rest)
	q.leave(c)
	c.batch, c.next, c.tx, c.back = nil, 0, nil, nil
	kept := q.durable && (c.keep || c.conn.dead())
	if !q.permanent && q.consumers == 0 && !kept {
		d.queues = slices.DeleteFunc(d.queues, func(k *queue) bool { return k == q })
		d.freed()
	}
	b.retire(&c.tally)
	b.consumers--
	return nil
}

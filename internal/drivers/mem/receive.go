package mem

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

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

// run passes each due message to handle, until ctx ends.
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
	if len(it.body) > c.maxBody {
		return driver.Errorf(driver.ClassTooLarge, c.op, "see --max-message-size", "a body of %d bytes is larger than %d",
			len(it.body), c.maxBody)
	}
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

// again returns a message for redelivery.
func again(it *item) item {
	more := *it
	more.redelivered = true
	return more
}

// giveBack returns messages to their queues.
func (c *consumer) giveBack(list []item) {
	c.tally.n[returned].Add(uint64(len(list)))
	c.queue.dest.mu.Lock()
	defer c.queue.dest.mu.Unlock()
	c.queue.giveBack(list)
}

// commit ends the transaction, unless it is empty. Messages that are rolled back are delivered again.
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

// commitIdle ends a transaction when no messages come and none are being delivered.
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

// refill waits for messages. If it returns false, there may be none.
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

// ripe reports whether the next message may be delivered now; if not, it waits.
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

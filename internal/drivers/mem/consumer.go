package mem

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

const defaultCredit = 1000

// consumer takes messages from a queue, as many as it has credit for, and the next ones when it has delivered these.
type consumer struct {
	*conn
	lease     *transport.Lease[*conn]
	spec      driver.ConsumerSpec
	queue     *queue
	selector  selector
	op        string
	maxBody   int
	deliver   func(*driver.Delivery) driver.Verdict
	input     *driver.Meter // waits for messages, while at least one worker waits
	waiting   int           // workers
	ahead     fifo[Message] // messages taken and not delivered
	unsettled int           // messages taken and not settled
	tx        []Message     // delivered and not settled: in the open transaction, or too late to settle them
	closing   sync.Once
}

// Consumer subscribes.
func (d *memDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := fmt.Sprintf("open consumer on %s", spec.Destination)
	sel, err := parseSelector(spec.Selector)
	if err != nil {
		return nil, &driver.Error{Class: driver.ClassUnsupported, Op: op, Hint: "simplify --selector", Err: err}
	}
	if (spec.Durable || spec.Shared) && spec.Destination.Kind != driver.Topic {
		return nil, driver.Errorf(driver.ClassUnsupported, op, "use topic://NAME", "a queue has no subscriptions")
	}
	lease, err := d.Acquire(ctx, spec.Connection)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	spec.Credit = cmp.Or(spec.Credit, defaultCredit)
	c := &consumer{
		conn: lease.Conn, lease: lease, spec: spec, op: fmt.Sprintf("receive from %s", spec.Destination), selector: sel,
		maxBody: d.open.LargestBody(), input: driver.NewMeter(),
	}
	if c.locked(func() { err = c.join(op) })(); err != nil {
		lease.Release(ctx)
		return nil, err
	}
	return c, nil
}

// join adds the consumer to its queue or subscription, and creates a subscription if need be.
func (c *consumer) join(op string) error {
	spec, d, key := &c.spec, c.destination(c.spec.Destination), ""
	topic := spec.Destination.Kind == driver.Topic
	if spec.Durable || spec.Shared {
		key = fmt.Sprintf("%t %s %s", spec.Shared, spec.Connection.ClientID, spec.Subscription)
	}
	i := slices.IndexFunc(d.queues, func(q *queue) bool { return !topic || key != "" && q.key == key })
	switch {
	case i < 0:
		c.queue = d.add(&queue{key: key, durable: spec.Durable, selector: c.selector})
	case topic && !spec.Shared && len(d.queues[i].members) > 0:
		return driver.Errorf(driver.ClassOther, op, "use another client ID or subscription name",
			"the subscription %s is in use", spec.Subscription)
	default:
		c.queue = d.queues[i]
	}
	c.queue.members = append(c.queue.members, c)
	c.queue.choosy = c.queue.choosy || c.selector != nil || spec.Concurrency > 1
	return nil
}

// Waits implements [driver.Waiter].
func (c *consumer) Waits() driver.Waits { return driver.Waits{Input: c.input.Idle()} }

// Probe implements [driver.Prober]: a stalled broker answers after its stall.
func (c *consumer) Probe(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.answered(ctx, c.op, 0)
	if err == nil && ctx.Err() != nil {
		err = driver.Errorf(driver.ClassTimeout, c.op, "", "the broker did not answer: %w", ctx.Err())
	}
	return err
}

// Close returns the messages taken but not settled, and ends the subscription unless it is kept.
func (c *consumer) Close(ctx context.Context) error {
	c.closing.Do(func() {
		c.locked(c.leave)()
		c.lease.Release(ctx)
	})
	return nil
}

func (c *consumer) leave() {
	q := c.queue
	q.giveBack(false, c.ahead.list()...)
	q.giveBack(true, c.tx...)
	q.members = slices.DeleteFunc(q.members, func(k *consumer) bool { return k == c })
	maps.DeleteFunc(q.groups, func(_ string, k *consumer) bool { return k == c })
	q.notify()
	kept := q.durable && (c.spec.KeepSubscription || c.lost)
	if c.spec.Destination.Kind == driver.Topic && len(q.members) == 0 && !kept {
		q.dest.queues = slices.DeleteFunc(q.dest.queues, func(k *queue) bool { return k == q })
	}
	c.changed.Broadcast() // there may be room
}

// Run delivers until ctx ends or the connection is lost.
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(working, c.locked(c.queue.arrived.Broadcast))()
	c.deliver = deliver
	errs := make([]error, max(c.spec.Concurrency, 1))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			if errs[i] = c.work(working); errs[i] != nil {
				stop()
			}
		})
	}
	wg.Wait()
	err := cmp.Or(errs...)
	if err == nil && c.spec.TransactionSize > 0 {
		c.locked(func() { c.commit(ctx) })()
	}
	return err
}

// work delivers one message after the other, until ctx ends.
func (c *consumer) work(ctx context.Context) error {
	var d driver.Delivery
	for {
		it, ok, err := c.next(ctx)
		if !ok {
			return err
		}
		if len(it.Body) > c.maxBody {
			return transport.TooLarge(c.op, "a body of", len(it.Body), c.maxBody)
		}
		d = driver.Delivery{Time: it.Time, HasTime: true, ID: it.ID, Body: it.Body, Redelivered: it.redelivered}
		c.settle(ctx, it, c.deliver(&d))
	}
}

// next waits for a message and takes it. It returns false when ctx has ended, and for an error.
func (c *consumer) next(ctx context.Context) (it Message, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.queue.notify() // the signal for this one may have been for others, too
	for ctx.Err() == nil {
		if c.lost || c.frozen {
			c.queue.notify()
			if err = c.passes(ctx, c.op); c.lost {
				return it, false, err
			}
			continue
		}
		if len(c.ahead.list()) == 0 {
			c.queue.take(c)
		}
		wait := time.Duration(-1)
		if ahead := c.ahead.list(); len(ahead) > 0 {
			wait = c.until(ahead[0].due)
		}
		switch {
		case wait == 0:
			it = c.ahead.remove(0)
			if it.expires == 0 || it.expires > c.now() {
				c.stats.Delivered++
				if it.redelivered {
					c.stats.Redelivered++
				}
				return it, true, nil
			}
			c.unsettled--
			c.stats.Expired++
		case len(c.tx) > 0 && c.unsettled == len(c.tx):
			c.commit(ctx)
		default:
			c.idle(ctx, wait)
		}
	}
	return it, false, nil
}

// idle waits for a time; for a message if that is below 0.
func (c *consumer) idle(ctx context.Context, wait time.Duration) {
	if c.waiting++; c.waiting == 1 {
		c.input.Begin()
	}
	if wait > 0 {
		c.wait(ctx, wait)
	} else {
		c.queue.arrived.Wait()
	}
	if c.waiting--; c.waiting == 0 {
		c.input.End()
	}
}

// settle settles a delivered message.
func (c *consumer) settle(ctx context.Context, it Message, verdict driver.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := c.passes(ctx, c.op) != nil
	if late || verdict == driver.Accept && c.spec.TransactionSize > 0 {
		if c.tx = append(c.tx, it); !late && len(c.tx) >= c.spec.TransactionSize {
			c.commit(ctx)
		}
		return
	}
	c.unsettled--
	switch verdict {
	case driver.Release:
		c.queue.giveBack(true, it)
	case driver.Reject:
		c.stats.Refused++
	default:
		c.stats.Acknowledged++
	}
}

// commit ends the transaction, unless it is empty. Messages that are rolled back are delivered again.
func (c *consumer) commit(ctx context.Context) {
	if len(c.tx) == 0 {
		return
	}
	tx, began := c.tx, time.Now()
	c.tx = nil
	refused, due := c.refuseCommit()
	late := c.answered(ctx, c.op, due) != nil
	switch {
	case late:
		c.tx = slices.Concat(tx, c.tx)
	case refused:
		c.queue.giveBack(true, tx...)
	default:
		c.stats.Acknowledged += uint64(len(tx))
	}
	if !late {
		c.unsettled -= len(tx)
	}
	c.committed(c.spec.Commits, began, !late && !refused)
}

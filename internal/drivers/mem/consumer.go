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

// consumer takes batches of at most its credit from a queue; the next batch when the last has been settled.
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
	next     int // index in batch
	timer    *time.Timer
	delivery driver.Delivery
	tally    tally
	input    *driver.Meter // waits for messages
	closed   bool
	workers  int           // deliveries at once
	settled  chan struct{} // signalled when a worker has settled a message

	unsettled atomic.Int64 // number of messages taken and not settled

	settling sync.Mutex // one worker settles at a time
	size     int        // messages per transaction; 0 for none
	commits  driver.Commits
	maxBody  int
	tx       []item // messages delivered in the open transaction
	back     []item // delivered but unsettled messages, to be given back when the consumer closes
}

func (b *Broker) newConsumer(c *conn, spec driver.ConsumerSpec, op string, maxBody int) (*consumer, error) {
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
		maxBody: maxBody,
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

// subscribe finds or creates the queue of a subscription. d.mu is held.
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

// Host implements [driver.Located].
func (c *consumer) Host() string { return c.conn.host }

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

// Close returns the messages taken but not settled, and ends the subscription unless it is kept.
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

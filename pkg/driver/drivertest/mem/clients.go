package mem

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// never is when a withheld answer is due.
const never = time.Duration(1 << 62)

// pipeSize is how many messages of a producer can be in flight on a frozen [Line] before Send blocks.
const pipeSize = 50

// answer is the end of a send, or of a transaction.
type answer struct {
	due     time.Duration // or never
	slots   []driver.Slot
	outcome driver.Outcome
	began   time.Time // of the commit; zero for a single send
}

// producer sends. Answers that are not due at once wait in a list; a timer gives them when they are due.
type producer struct {
	*conn
	lease   *transport.Lease[*conn]
	dest    *destination
	spec    driver.ProducerSpec
	op      string
	to      []byte // the address of dest, of an anonymous producer
	done    driver.Completions
	ended   func(error) // see OnEnd
	closing sync.Once

	room, socket *driver.Meter // waits for room in a full queue, and on a frozen line

	timer   *time.Timer // calls settle
	answers []answer    // to come
	items   []Message   // of the open transaction, like slots
	slots   []driver.Slot
}

// Producer opens a producer.
func (d *memDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	lease, err := d.Acquire(ctx, spec.Connection)
	if err != nil {
		return nil, fmt.Errorf("open producer on %s: %w", spec.To(), err)
	}
	if spec.Anonymous && spec.CommitInterval > 0 {
		lease.Release(ctx)
		return nil, driver.Errorf(driver.ClassUnsupported, "", "leave out --commit-interval",
			"replies have no transactions")
	}
	p := &producer{
		conn: lease.Conn, lease: lease, spec: spec, op: "send to " + spec.To(), done: done,
		room: driver.NewMeter(), socket: driver.NewMeter(),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	began := time.Now()
	p.pass(ctx, p.options.Attach)
	spec.Connection.Stages.Ended(driver.StageAttach, began)
	p.timer = time.AfterFunc(never, p.locked(p.settle))
	if !spec.Anonymous {
		p.dest = p.destination(spec.Destination)
	}
	p.producers[p] = struct{}{}
	return p, nil
}

// Send stores m, or adds it to the transaction. It blocks only for room in a full queue, and on a frozen line.
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	p.mu.Lock()
	accepted, err := p.send(ctx, m)
	p.mu.Unlock()
	if accepted {
		p.done.Done(m.Slot, driver.Outcome{})
	}
	return err
}

// send is Send. It returns true for a message that is accepted at once.
func (p *producer) send(ctx context.Context, m *driver.Message) (accepted bool, err error) {
	if p.spec.Anonymous && (p.dest == nil || p.dest.gone || !bytes.Equal(p.to, m.To)) {
		p.to = append(p.to[:0], m.To...)
		p.dest = p.addressed(string(m.To))
	}
	switch {
	case p.frozen && !p.lost && len(p.answers) < pipeSize:
		p.stats.Arrived++
		p.answer(answer{due: never, slots: []driver.Slot{m.Slot}})
		return false, nil
	case p.frozen || p.lost:
		p.socket.Begin()
		defer p.socket.End()
		return false, p.passes(ctx, p.op)
	case p.dest != nil && p.dest.full():
		p.room.Begin()
		err = p.await(ctx, p.op, "receive from it or raise -o limit", func() bool { return !p.dest.full() })
		if p.room.End(); err != nil {
			return false, err
		}
	}
	p.stats.Arrived++
	it := p.message(m)
	switch {
	case p.spec.CommitInterval > 0:
		p.items, p.slots = append(p.items, it), append(p.slots, m.Slot)
		if len(p.slots) >= p.spec.CommitInterval {
			p.commit()
		}
	case p.dest == nil:
		err = driver.Errorf(driver.ClassNotFound, p.op, "", "there is no %q", m.To)
		p.answer(answer{slots: []driver.Slot{m.Slot}, outcome: driver.Outcome{
			State: driver.Rejected, Class: driver.ClassNotFound, Err: err,
		}})
		return false, nil
	case p.told && (p.spec.Anonymous || !p.options.OnlyReplies):
		p.sendFaulty(m.Slot, &it)
	default:
		p.store(&it)
		p.stats.Stored++
		p.stats.Ended[driver.Accepted]++
		return true, nil
	}
	return false, nil
}

// addressed returns the destination of replies; nil if it is no more.
func (p *producer) addressed(address string) *destination {
	name, err := driver.ParseDestination(address)
	if d := p.destinations[name]; d != nil || err != nil || strings.HasPrefix(name.Name, temporary) {
		return d
	}
	return p.destination(name)
}

// temporary begins the names of dynamic queues.
const temporary = "temporary-"

// message returns a message as it is stored.
func (p *producer) message(m *driver.Message) Message {
	it := Message{
		Time: m.Time, ID: cmp.Or(m.ID, p.spec.Origin), Variant: p.spec.Variants[m.Variant],
		Persistent: p.spec.Persistent, TTL: p.spec.TTL, replyTo: m.ReplyTo, correlation: slices.Clone(m.Correlation),
	}
	it.Group = cmp.Or(m.Group, it.Group)
	if len(m.Values) > 0 {
		it.Properties = slices.Clone(it.Properties)
		values := m.Values
		for i := range it.Properties {
			if p := &it.Properties[i]; p.Varies {
				*p, values = driver.Property{Key: p.Key, Value: string(values[0])}, values[1:]
			}
		}
	}
	if m.Body != nil {
		it.Body = slices.Clone(m.Body)
	}
	if it.Priority < 0 {
		it.Priority = 4 // the default of JMS and AMQP
	}
	if it.TTL > 0 {
		it.expires = p.now() + it.TTL
	}
	return it
}

// store puts the message into the queues, followed by the held message that it overtakes.
func (p *producer) store(it *Message) {
	if p.spec.Delay > 0 {
		later := *it
		time.AfterFunc(p.spec.Delay, p.locked(func() { p.dest.put(&later) }))
		return
	}
	p.dest.put(it)
	if p.dest.release() {
		p.stats.Reordered++
	}
}

// sendFaulty lets the faults decide on a message.
func (p *producer) sendFaulty(slot driver.Slot, it *Message) {
	p.arrive()
	a := answer{due: p.now() + p.options.Latency, slots: []driver.Slot{slot}}
	if a.outcome = p.refuse(); a.outcome == (driver.Outcome{}) {
		p.storeFaulty(it)
		if every(p.options.Withhold, p.arrived) {
			p.stats.Withheld++
			a.due = never
		}
	}
	p.answer(a)
}

// answer ends a send, at once or when that is due.
func (p *producer) answer(a answer) {
	p.answers = append(p.answers, a)
	p.settle()
}

// settle ends the sends that are due, and all of them when the connection is lost.
func (p *producer) settle() {
	if p.lost {
		if p.ended != nil {
			p.ended(p.passes(context.Background(), p.op))
			p.ended = nil
		}
		p.abandon()
	}
	if p.frozen {
		return
	}
	next := never
	p.answers = slices.DeleteFunc(p.answers, func(a answer) bool {
		wait := p.until(a.due)
		if wait > 0 {
			next = min(next, wait)
		} else {
			p.end(a)
		}
		return wait <= 0
	})
	p.timer.Reset(next)
	p.changed.Broadcast()
}

// end reports the end of sends, and of their commit.
func (p *producer) end(a answer) {
	p.stats.Ended[a.outcome.State] += uint64(len(a.slots))
	p.done.DoneAll(a.slots, a.outcome)
	if !a.began.IsZero() {
		p.committed(p.spec.Commits, a.began, a.outcome.State == driver.Accepted)
	}
}

// abandon ends all messages without an answer as Unknown.
func (p *producer) abandon() {
	o := driver.Outcome{State: driver.Unknown, Class: driver.ClassTimeout}
	if p.lost {
		o.Class = driver.ClassConnectionLost
	}
	o.Err = driver.Errorf(o.Class, p.op, "", "the broker did not answer before the end")
	if len(p.slots) > 0 {
		p.answers = append(p.answers, answer{slots: p.slots})
	}
	for _, a := range p.answers {
		a.outcome = o
		p.end(a)
	}
	p.answers, p.slots, p.items = nil, nil, nil
}

// Flush implements [driver.Flusher]: it commits a transaction that is not full.
func (p *producer) Flush(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.slots) == 0 {
		return nil
	}
	if err := p.passes(ctx, p.op); err != nil {
		return err
	}
	p.commit()
	return nil
}

// commit stores the messages of the open transaction, all or none. It does not wait for room.
func (p *producer) commit() {
	a, items := answer{slots: p.slots, began: time.Now()}, p.items
	p.slots, p.items = nil, nil
	var refused bool
	if refused, a.due = p.refuseCommit(); refused {
		a.outcome, items = told(driver.Rejected), nil
	}
	for i := range items {
		p.arrive()
		p.storeFaulty(&items[i])
	}
	p.answer(a)
}

// OnEnd implements [driver.Watched].
func (p *producer) OnEnd(ended func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = ended
	p.settle()
}

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits {
	return driver.Waits{Credit: p.room.Wait(), Socket: p.socket.Wait()}
}

// Close ends the open transaction and waits for acknowledgements in flight; withheld ones, which never come, end as
// Unknown at once.
func (p *producer) Close(ctx context.Context) error {
	p.closing.Do(func() {
		if ctx.Err() == nil {
			_ = p.Flush(ctx) // messages without a commit end as Unknown
		}
		p.locked(func() {
			if p.dest != nil {
				p.dest.release()
			}
			pending := func(a answer) bool { return p.frozen || a.due < never }
			for ctx.Err() == nil && slices.ContainsFunc(p.answers, pending) {
				p.wait(ctx, 0)
			}
			p.timer.Stop()
			p.abandon()
			delete(p.producers, p)
		})()
		p.lease.Leave(ctx, p.spec.Connection.Stages, func(ctx context.Context) {
			p.locked(func() { p.pass(ctx, p.options.Close) })()
			p.lease.Release(ctx)
		})
	})
	return nil
}

// consumer takes messages from a queue, as many as it has credit for, and the next ones when it has delivered these.
type consumer struct {
	*conn
	lease     *transport.Lease[*conn]
	spec      driver.ConsumerSpec
	queue     *queue
	selector  *driver.Property
	op        string
	maxBody   int
	input     *driver.Meter // waits for messages
	ahead     fifo[Message] // messages taken and not delivered
	unsettled int           // messages taken and not settled
	tx        []Message     // delivered and not settled: in the open transaction, or too late to settle them
	closing   sync.Once
}

// Consumer subscribes.
func (d *memDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := "open consumer on " + spec.From()
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
	if spec.Dynamic {
		spec.Destination = driver.Destination{Name: temporary + rand.Text()}
	}
	spec.Credit = cmp.Or(spec.Credit, 1000)
	c := &consumer{
		conn: lease.Conn, lease: lease, spec: spec, op: "receive from " + spec.From(), selector: sel,
		maxBody: d.maxBody, input: driver.NewMeter(),
	}
	began := time.Now()
	if c.locked(func() {
		c.pass(ctx, c.options.Attach)
		err = c.begin(op)
	})(); err != nil {
		lease.Release(ctx)
		return nil, err
	}
	spec.Connection.Stages.Ended(driver.StageAttach, began)
	return c, nil
}

// begin adds the consumer to its destination, a new one if it is dynamic.
func (c *consumer) begin(op string) error {
	c.destination(c.spec.Destination).temporary = c.spec.Dynamic
	return c.join(op)
}

// Address implements [driver.Addressed].
func (c *consumer) Address() string { return c.spec.Destination.String() }

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
		c.lease.Leave(ctx, c.spec.Connection.Stages, func(ctx context.Context) {
			c.locked(func() {
				c.leave()
				c.pass(ctx, c.options.Close)
			})()
			c.lease.Release(ctx)
		})
	})
	return nil
}

func (c *consumer) leave() {
	q := c.queue
	q.giveBack(false, c.ahead.list()...)
	q.giveBack(true, c.tx...)
	c.spec.Credit = 0 // for a Run that has not ended
	q.members = slices.DeleteFunc(q.members, func(k *consumer) bool { return k == c })
	maps.DeleteFunc(q.groups, func(_ string, k *consumer) bool { return k == c })
	q.arrived.Broadcast()
	if q.dest.temporary {
		q.dest.gone = true
		delete(c.destinations, q.dest.name)
	}
	kept := q.durable && (c.spec.KeepSubscription || c.lost)
	if c.spec.Destination.Kind == driver.Topic && len(q.members) == 0 && !kept {
		q.dest.queues = slices.DeleteFunc(q.dest.queues, func(k *queue) bool { return k == q })
	}
	c.changed.Broadcast() // there may be room
}

// Run delivers until ctx ends or the connection is lost.
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	defer context.AfterFunc(ctx, c.locked(c.queue.arrived.Broadcast))()
	var d driver.Delivery
	for {
		it, ok, err := c.next(ctx)
		switch {
		case err != nil:
			return err
		case !ok:
			if c.spec.TransactionSize > 0 {
				c.locked(func() { c.commit(ctx) })()
			}
			return nil
		case len(it.Body) > c.maxBody:
			return transport.TooLarge(c.op, "a body of", len(it.Body), c.maxBody)
		}
		d = driver.Delivery{Time: it.Time, HasTime: true, ID: it.ID, Body: it.Body, Redelivered: it.redelivered}
		if c.spec.Correlated {
			d.ReplyTo, d.Correlation = []byte(it.replyTo), it.correlation
		}
		c.settle(ctx, it, deliver(&d))
	}
}

// next waits for a message and takes it. It returns false when ctx has ended, and for an error.
func (c *consumer) next(ctx context.Context) (it Message, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ctx.Err() == nil && !c.lost {
		if !c.frozen && len(c.ahead.list()) == 0 {
			c.queue.take(c)
		}
		wait := time.Duration(-1)
		if ahead := c.ahead.list(); len(ahead) > 0 {
			wait = c.until(ahead[0].due)
		}
		switch {
		case c.frozen:
			c.wait(ctx, 0)
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
		case len(c.tx) > 0 && c.unsettled == len(c.tx):
			c.commit(ctx)
		default:
			c.idle(ctx, wait)
		}
	}
	if c.lost {
		err = c.passes(ctx, c.op)
	}
	return it, false, err
}

// idle waits for a time; for a message if that is below 0.
func (c *consumer) idle(ctx context.Context, wait time.Duration) {
	c.input.Begin()
	defer c.input.End()
	if wait > 0 {
		c.wait(ctx, wait)
	} else {
		c.queue.arrived.Wait()
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

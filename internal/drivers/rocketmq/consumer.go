package rocketmq

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// consumer is a [driver.Consumer]: a member of a consumer group.
type consumer struct {
	membership
	op       string
	d        *rocketDriver
	lease    *transport.Lease[*client]
	client   *client // client of the lease
	opts     *Options
	topic    string
	filter   wire.Subscription
	route    *route
	conns    []*conn // to the brokers of the route, in its order
	stages   driver.Stages
	explicit bool // the brokers create groups only on request
	shared   *groupState

	cut     context.CancelFunc // ends the waits of manage
	kicked  chan struct{}      // the members of the group have changed
	stop    chan struct{}      // ends manage
	managed chan struct{}      // closed when manage has ended

	// Only the goroutine of manage uses these, and before and after it the goroutine that opens and closes.
	owned  map[queueID]*queue
	wanted map[queueID]time.Time // since when the queue is ours but locked by another

	running atomic.Bool   // Run is
	ended   atomic.Bool   // Run has
	input   *driver.Meter // of Run: nothing has arrived
	arrived chan struct{} // an answer to a pull or an error has come

	mu  sync.Mutex
	err error // why it cannot go on
	// The answers to pulls until Run delivers them.
	answered []*pulled // in the order of their arrival
	spare    []*pulled // for reuse
	held     int       // bytes of answers, until they have been delivered
	last     int       // bytes of the last answer with messages
	parked   []*queue  // to be pulled from once there is room
	large    []byte    // memory for the body of a large answer
	asked    int       // pulls without an answer
	leaving  bool      // no more pulls

	inflater   wire.Inflater
	ids        driver.IDReader
	delivery   driver.Delivery
	correlated bool   // deliveries have what replies need
	address    string // of the destination, for replies
	scratch    []byte // memory of readReply

	// when the broker lost the subscription, nanoseconds since the Unix epoch; 0 if it knows it
	unknown atomic.Int64

	filtered, rebalanced atomic.Uint64
	closed               bool
}

// queueID names a queue.
type queueID struct {
	topic, broker string
	number        int
}

// queue is a queue that this consumer owns.
type queue struct {
	queueID
	conn    *conn
	reach   *reach
	retry   bool
	started bool // used only by manage

	// busy is held while messages of the queue are being delivered; its holder then checks revoked.
	busy     sync.Mutex
	revoked  atomic.Bool
	next     int64 // next offset to pull from; guarded by busy, and before the queue is started
	consumed atomic.Int64

	// The broker's knowledge of our offset. Only one request that reports it is in flight at a time, and the next is
	// sent after its answer: a broker reads the requests of a connection in order but passes them to pools of threads
	// (consumerManageThreadPoolNums; pullMessageThreadPoolNums for the offsets that pulls would commit) and keeps the
	// offset that comes last (ConsumerOffsetManager.commitOffset), even if it is lower. An old offset that came last
	// would make the next owner of the queue receive messages twice.
	saving sync.Mutex
	told   int64         // the last offset sent to the broker; unsaved if it may not have it
	failed error         // why not
	open   chan struct{} // a request is in flight; closed when it has been answered
}

// Consumer implements [driver.Driver].
func (d *rocketDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := "open a consumer on " + spec.From()
	opts, f := &d.cfg.Options, Factory()
	err := Rules().CheckConsumer(op, &f, &spec)
	if err != nil {
		return nil, err
	}
	switch {
	case spec.Dynamic:
		return d.replies(ctx, op, &spec)
	case spec.Correlated && strings.HasPrefix(spec.Selector, "JMSCorrelationID "):
		return nil, library.Unsupported(op, "leave out --selector", "RocketMQ cannot filter by correlation IDs")
	}
	if spec.Selector != "" {
		d.filtered.Store(spec.Destination, true)
	}
	c := &consumer{
		membership: opts.membershipOf(&spec, randomID()), op: "receive from " + spec.Destination.String(), d: d,
		opts: opts, topic: spec.Destination.Name, filter: ParseSelector(spec.Selector),
		correlated: spec.Correlated, address: spec.Destination.String(),
		kicked: make(chan struct{}, 1), stop: make(chan struct{}), managed: make(chan struct{}),
		owned: map[queueID]*queue{}, wanted: map[queueID]time.Time{}, arrived: make(chan struct{}, 1),
		input: driver.NewMeter(), stages: spec.Connection.Stages,
	}
	c.filter.Topic, c.filter.Version = c.topic, time.Now().UnixMilli()
	c.shared = d.groupOf(&c.membership)
	ctx, cancel := d.opening(ctx)
	defer cancel()
	var attached func()
	spec.Connection.Stages, attached = attaching(spec.Connection.Stages)
	c.shared.enter()
	err = c.join(ctx, op, &spec)
	last := c.shared.joined(c, err == nil)
	if err == nil && last {
		if err = c.awaitShares(ctx); err != nil {
			err = wrap(op, err)
		}
	}
	if err != nil {
		c.shared.part(c)
		if c.lease != nil {
			_ = c.leave(ctx)
		}
		return nil, err
	}
	// Not the caller's context, which ends with the opening.
	life, cut := context.WithCancel(context.Background())
	c.cut = cut
	go c.manage(life)
	attached()
	return c, nil
}

// Run implements [driver.Consumer].
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	if ctx.Err() != nil {
		return nil
	}
	c.running.Store(true)
	defer func() {
		c.ended.Store(true)
		c.running.Store(false)
	}()
	c.kick() // manage starts to pull from our queues
	for {
		p, err := c.take(ctx)
		if p == nil {
			if err != nil {
				return lost(c.op, err)
			}
			return nil
		}
		err = c.process(ctx, p, deliver)
		c.recycle(p)
		if err != nil {
			return lost(c.op, err)
		}
	}
}

// fail makes Run return an error once it has delivered the messages that have arrived.
func (c *consumer) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	transport.Notify(c.arrived)
}

func (c *consumer) kick() { transport.Notify(c.kicked) }

// process delivers the messages of an answer to a pull.
func (c *consumer) process(ctx context.Context, p *pulled, deliver func(*driver.Delivery) driver.Verdict) error {
	q := p.q
	q.busy.Lock()
	defer q.busy.Unlock()
	if q.revoked.Load() {
		return nil
	}
	wait, err := p.verdict()
	if err != nil {
		return err
	}
	if p.hasNext {
		q.next = p.next
	}
	if p.code != wire.ResSuccess {
		q.consumed.Store(q.next) // skip messages that the filter excludes
		if p.dropped {
			c.park(q)
			return nil
		}
		return c.pull(q, wait)
	}
	if err := c.prefetch(q); err != nil { // the next messages, while these are being delivered
		c.fail(err) // after this delivery
	}
	if err = c.deliverAll(ctx, q, p.body, deliver); err != nil || ctx.Err() != nil || q.revoked.Load() {
		return err
	}
	q.consumed.Store(p.next)
	c.keepUp(q)
	return nil
}

// deliverAll delivers the messages until ctx ends or the queue is revoked.
func (c *consumer) deliverAll(
	ctx context.Context, q *queue, b []byte, deliver func(*driver.Delivery) driver.Verdict,
) error {
	var m wire.Message
	var err error
	for len(b) > 0 {
		if ctx.Err() != nil || q.revoked.Load() {
			return nil //nolint:nilerr // the end of ctx is no error
		}
		if b, err = m.Cut(b); err != nil {
			return driver.Errorf(driver.ClassProtocol, "", lookAtBroker, "read a message: %w", err)
		}
		if m.QueueOffset < q.consumed.Load() {
			continue
		}
		if !q.retry && !c.takes(wire.Property(m.Properties, wire.PropTags)) {
			c.filtered.Add(1)
			continue
		}
		verdict, err := c.deliver(q, &m, deliver)
		if err == nil && verdict != driver.Accept {
			err = c.sendBack(ctx, q, &m, verdict)
		}
		if err != nil {
			return err
		}
		q.consumed.Store(m.QueueOffset + 1)
	}
	return nil
}

func (c *consumer) deliver(
	q *queue, m *wire.Message, deliver func(*driver.Delivery) driver.Verdict,
) (driver.Verdict, error) {
	d := &c.delivery
	body, err := bodyOf(m, &c.inflater, c.d.cfg.MaxBody)
	if err != nil {
		return 0, err
	}
	d.Body, d.Redelivered = body, q.reach.again(m) || m.Retries > 0
	readProperties(m.Properties, &c.ids, d)
	if c.correlated {
		c.scratch = readReply(c.scratch, m.Properties, d)
	}
	d.Born, d.Stored = m.Born*1000, m.Stored*1000
	return deliver(d), nil
}

// Close implements [driver.Consumer].
func (c *consumer) Close(ctx context.Context) (err error) {
	if c.closed {
		return nil
	}
	c.closed = true
	close(c.stop)
	select {
	case <-c.managed:
	case <-ctx.Done():
		c.cut() // manage may be waiting for an answer
		<-c.managed
	}
	c.cut()
	c.shared.part(c)
	c.lease.Leave(ctx, c.stages, func(ctx context.Context) { err = c.leave(ctx) })
	return err
}

// Address implements [driver.Addressed].
func (c *consumer) Address() string { return c.address }

// Waits implements [driver.Waiter]. If there are several brokers, it reports the connection to the first.
func (c *consumer) Waits() driver.Waits {
	w := c.conns[0].waits()
	w.Input = c.input.Idle()
	return w
}

// Probe implements [driver.Prober]: it asks each broker of the topic.
func (c *consumer) Probe(ctx context.Context) error {
	for _, conn := range c.conns {
		if err := c.client.beat(ctx, conn); err != nil {
			return wrap(c.op, err)
		}
	}
	return nil
}

// Counters implements [driver.Counting].
func (c *consumer) Counters() []driver.Counter {
	return []driver.Counter{
		{Name: "filtered", Help: "messages of other tags that the broker sent", Value: c.filtered.Load()},
		{Name: "rebalanced", Help: "changes of the consumer's queues", Value: c.rebalanced.Load()},
	}
}

// groupState is the state that the consumers of a group in this driver share.
//
// All consumers that the driver is opening join the group before any takes its queues: otherwise each consumer would
// take its share as it joins, and give most of it back to the next ones, and the time would grow with the square of the
// number of consumers.
type groupState struct {
	name    string
	reaches sync.Map // queueID -> *reach

	mu        sync.Mutex
	entering  int                // consumers that have not joined yet
	unsettled map[*consumer]bool // consumers that have joined, and may not own their shares yet
	settled   chan struct{}      // closed when no consumer is unsettled
	// held is when brokers hold no pull of members that have left; then the group is to be deleted if remove is set.
	held   time.Time
	remove bool

	turn    turn                  // to ask for the group's offsets
	start   atomic.Pointer[route] // the group has offsets in its queues; nil: not known
	listing listing
}

// groupOf returns the state of a consumer's group.
func (d *rocketDriver) groupOf(m *membership) *groupState {
	fresh := &groupState{
		name: m.group, unsettled: map[*consumer]bool{}, turn: newTurn(), listing: listing{turn: newTurn()},
	}
	if m.alone {
		return fresh
	}
	known, _ := d.groups.LoadOrStore(m.group, fresh)
	return known.(*groupState)
}

// enter announces a consumer.
func (g *groupState) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entering++
}

// joined reports that an announced consumer is a member of the group, or that it cannot become one. It returns whether
// no other is announced, and then makes the others take their shares.
func (g *groupState) joined(c *consumer, member bool) (last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entering--
	if member {
		g.unsettled[c] = true
	}
	if g.entering > 0 {
		return false
	}
	for each := range g.unsettled {
		if each != c {
			each.kick()
		}
	}
	return true
}

// defers returns whether a member must leave its share for later, as others are announced. The last of them kicks it.
func (g *groupState) defers(c *consumer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.entering > 0 {
		g.unsettled[c] = true
	}
	return g.entering > 0
}

// settle reports that a member owns its share, or that it has failed. The channel is closed when this holds for all
// members.
func (g *groupState) settle(c *consumer) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.unsettled, c)
	if g.settled == nil {
		g.settled = make(chan struct{})
	}
	settled := g.settled
	if len(g.unsettled) == 0 {
		close(settled)
		g.settled = nil
	}
	return settled
}

// part reports that a consumer is about to leave the group, or cannot become a member. If it is the last one, it may
// delete the group and its offsets.
func (g *groupState) part(c *consumer) {
	g.settle(c)
	g.start.Store(nil)
}

// starts reports whether the group has offsets in the queues of a route.
func (g *groupState) starts(r *route) bool {
	start := g.start.Load()
	return start != nil && slices.Equal(start.brokers, r.brokers)
}

package amqp

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// defaultCredit is how many messages the broker may send ahead.
const defaultCredit = 1000

// States of a consumer.
const (
	stateOpen    = iota // Run has not begun: there is no credit
	stateRunning        // messages are delivered
	stateEnded          // messages go back to the broker
)

// consumer is a [driver.Consumer]: a receiving link in a session of its own.
//
// On a connection of its own the reader of the connection delivers: a message is not copied and no goroutine is woken
// for it. On a shared connection, where that would let a slow consumer hold up the others, and for transactions and
// concurrent deliveries, messages are copied and held for Run. The credit bounds how many.
//
// Messages are settled in ranges: when the reader has nothing more to read, but at the latest after a quarter of the
// credit.
type consumer struct {
	op      string
	lease   *transport.Lease[*connection]
	session *session
	link    link
	sub     subscription
	credit  uint32
	rounds  bool   // credit is given when all that was given is used up
	settled bool   // at-most-once
	lastID  uint32 // of requests to the coordinator; guarded by session.mu
	free    func() // ends the reservation of a stream that prepareReceive made
	spec    driver.ConsumerSpec
	input   *driver.Meter // of Run: nothing has arrived
	wait    *driver.Meter // of Run: waits for a transaction
	closed  bool

	coordinator *coordinator // nil without transactions

	// Of the reader: a delivery of several frames.
	partial   bool
	partialID uint32
	parts     int  // frames of it
	presettle bool // it is settled
	pieces    []byte
	listed    bool // in connection.settle
	reader    decoder

	mu            sync.Mutex
	state         int
	deliver       func(*driver.Delivery) driver.Verdict
	over          <-chan struct{} // closed when Run is to end
	err           error           // why it has ended
	deliveryCount uint32          // of the peer's next delivery; this and limit are serial numbers
	limit         uint32          // the first that we gave no credit for
	granted       uint32          // the first that we never gave credit for
	unsettled     uint32          // deliveries that have arrived and are not settled
	since         uint32          // deliveries since the last settleAll
	accepted      span            // that are to be settled as accepted
	others        []byte          // dispositions of other states, encoded
	held          []held
	spare         []held
	waiting       int // messages that are held, or were taken from there and are being delivered
	waitingBytes  int
	arrived       chan struct{} // held has grown, or err is set
	room          chan struct{} // waiting has shrunk, or Run has ended

	settling sync.Mutex // frames are put in the order in which they were made
	frames   []byte
}

// held is a copy of a message. Its buffer is used again.
type held struct {
	id      uint32
	settled bool
	text    []byte
}

// Consumer implements [driver.Driver].
func (d *amqpDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := "open a consumer on " + spec.Destination.String()
	sub, err := newSubscription(op, spec)
	if err != nil {
		return nil, err
	}
	lease, err := d.pool.Acquire(ctx, spec.Connection)
	if err != nil {
		return nil, err
	}
	c := lease.Conn
	k := &consumer{
		op: "receive from " + spec.Destination.String(), lease: lease, sub: sub, credit: defaultCredit,
		rounds: c.creditInRounds(), settled: d.cfg.Options.Settle == settleAtMostOnce, free: func() {}, spec: spec,
		input: driver.NewMeter(), wait: driver.NewMeter(), arrived: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	if spec.Credit > 0 {
		k.credit = uint32(min(spec.Credit, 1<<30)) //nolint:gosec // in range
	}
	if n := spec.TransactionSize; n > 0 {
		k.credit = max(k.credit, uint32(2*n)) //nolint:gosec // what a transaction holds is not settled
	}
	k.sub.reserve(c)
	if err := k.open(ctx, op); err != nil {
		k.quit(ctx)
		return nil, c.explain(op, err)
	}
	return k, nil
}

func (k *consumer) open(ctx context.Context, op string) (err error) {
	c, opts, spec := k.lease.Conn, &k.lease.Conn.driver.cfg.Options, &k.spec
	if spec.TransactionSize > 0 && k.settled {
		return driver.Errorf(driver.ClassUnsupported, op, "leave out -o settle=at-most-once or --tx",
			"messages that the broker forgets on delivery cannot be part of a transaction")
	}
	if spec.Failing != driver.Accept && (spec.TransactionSize > 0 || k.settled) {
		return driver.Errorf(driver.ClassUnsupported, op, "leave out --consumer-fail, or --tx and -o settle=at-most-once",
			"a message fails by itself, and is not settled before")
	}
	if err := errors.Join(c.speaks.checkSelector(op, spec), c.checkConsumer(op, spec, opts)); err != nil {
		return err
	}
	if k.free, err = c.prepareReceive(ctx, op, spec, opts); err != nil {
		return err
	}
	if k.session, err = c.beginSession(ctx, false); err != nil {
		return err
	}
	k.link.consumer = k
	attach := wire.Attach{
		Name: k.sub.link, Role: wire.RoleReceiver,
		Source: wire.Terminus{
			Kind: wire.DescSource, Address: wire.Some(c.address(spec.Destination)),
			Durable: c.durability(),
		},
		// Without a max-message-size: a broker might drop larger messages, and say nothing.
		Target: wire.Terminus{Kind: wire.DescTarget, Address: wire.Some(spec.Name)},
	}
	if k.settled {
		attach.SenderSettleMode = wire.SenderSettled
	}
	k.sub.apply(&attach.Source)
	if c.managed(spec.Destination) { // other queues than streams pay no attention to it
		attach.Source.Filters = append(attach.Source.Filters, streamFilter(opts.From))
	}
	if spec.Selector != "" {
		attach.Source.Filters = append(attach.Source.Filters, wire.SelectorFilter(spec.Selector))
	}
	if err := k.session.attach(ctx, &k.link, &attach); err != nil {
		return k.attachError(op, err)
	}
	if spec.Selector != "" && !slices.Contains(k.link.peer.filters, wire.SelectorFilterName) {
		return driver.Errorf(driver.ClassUnsupported, op, "leave out --selector",
			"the broker ignores the selector and would send all messages")
	}
	if k.settled && k.link.peer.sendSettle == wire.SenderUnsettled {
		return driver.Errorf(driver.ClassUnsupported, op, "use the other value of -o settle",
			"the broker does not agree to settle=%s", opts.Settle)
	}
	if spec.TransactionSize > 0 {
		k.coordinator, err = newCoordinator(ctx, k.session, spec.Name, k.nextID)
	}
	return err
}

// attachError tells that a selector is wrong.
func (k *consumer) attachError(op string, err error) error {
	if k.spec.Selector != "" && conditionOf(err) == wire.CondInvalidField {
		return driver.Errorf(driver.ClassUnsupported, op, "check the syntax of --selector",
			"the broker does not accept the selector %q: %w", k.spec.Selector, err)
	}
	return err
}

// Run implements [driver.Consumer].
func (k *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	k.mu.Lock()
	if k.err == nil {
		k.state, k.deliver, k.over = stateRunning, deliver, ctx.Done()
	}
	k.mu.Unlock()
	k.settleAll() // gives the first credit
	k.lease.Conn.out.Flush()
	var err error
	switch {
	case k.spec.TransactionSize > 0:
		err = k.runTransactions(ctx)
	case k.spec.Concurrency > 1:
		err = k.runConcurrently(ctx)
	default:
		err = k.runHeld(ctx)
	}
	k.mu.Lock()
	k.state = stateEnded
	for i := range k.held { // prefetched, and not delivered
		k.note(k.held[i].id, k.held[i].settled, driver.Release)
		k.release(&k.held[i])
	}
	k.held, k.spare = nil, nil
	k.mu.Unlock()
	k.settleAll()
	k.withdraw()
	k.lease.Conn.out.Flush()
	if err != nil && ctx.Err() == nil {
		return k.lease.Conn.explain(k.op, err)
	}
	return nil
}

// next returns messages that are held, and waits until there are some. It returns none when ctx or the consumer has
// ended.
func (k *consumer) next(ctx context.Context) ([]held, error) {
	for {
		if ctx.Err() != nil {
			return nil, nil //nolint:nilerr // the end of ctx is no error
		}
		k.mu.Lock()
		list, err := k.held, k.err
		if len(list) > 0 {
			k.held, k.spare = k.spare[:0], nil
		}
		k.mu.Unlock()
		if len(list) > 0 || err != nil {
			return list, err
		}
		k.input.Begin()
		select {
		case <-k.arrived:
		case <-ctx.Done():
		}
		k.input.End()
	}
}

// runHeld delivers the held messages, one after the other; none, if the reader delivers.
func (k *consumer) runHeld(ctx context.Context) error {
	var dec decoder
	for {
		list, err := k.next(ctx)
		if len(list) == 0 {
			return err
		}
		for i := range list {
			if ctx.Err() != nil {
				k.putBack(list[i:])
				break
			}
			if err := k.deliverHeld(&list[i], &dec); err != nil {
				return err
			}
		}
		k.settleAll()
		k.lease.Conn.out.Flush()
		k.mu.Lock()
		if k.spare == nil {
			k.spare = list[:0]
		}
		k.mu.Unlock()
	}
}

// putBack holds messages again that were taken and not delivered.
func (k *consumer) putBack(list []held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = append(slices.Clone(list), k.held...)
}

// deliverHeld delivers a message that was held; the lock is not held.
func (k *consumer) deliverHeld(h *held, dec *decoder) error {
	d, err := dec.decode(k.lease.Conn, h.text)
	if err != nil {
		return err
	}
	v := k.deliver(d)
	k.mu.Lock()
	k.release(h)
	k.note(h.id, h.settled, v)
	due := k.since >= max(k.credit/4, 1)
	k.mu.Unlock()
	if due {
		k.settleAll()
		k.lease.Conn.out.Flush()
	}
	return nil
}

// runConcurrently delivers several messages at once.
func (k *consumer) runConcurrently(ctx context.Context) error {
	work := make(chan *held)
	var workers sync.WaitGroup
	failed := make(chan error, k.spec.Concurrency)
	for range k.spec.Concurrency {
		workers.Go(func() {
			var dec decoder
			for h := range work {
				if err := k.deliverHeld(h, &dec); err != nil {
					failed <- err
				}
				k.settleAll()
				k.lease.Conn.out.Flush()
			}
		})
	}
	defer workers.Wait()
	defer close(work)
	for {
		list, err := k.next(ctx)
		if len(list) == 0 {
			return err
		}
		for i := range list {
			select {
			case work <- &list[i]:
			case err := <-failed:
				return err
			case <-ctx.Done():
				k.putBack(list[i:])
				return nil
			}
		}
	}
}

// stop ends the consumer: because the broker or the connection has.
func (k *consumer) stop(why error) {
	if why == nil {
		why = transport.ErrClosed
	}
	k.mu.Lock()
	if k.err == nil {
		k.err = why
	}
	k.mu.Unlock()
	k.tell()
	select {
	case k.room <- struct{}{}:
	default:
	}
}

// Host implements [driver.Located].
func (k *consumer) Host() string { return k.lease.Conn.host }

// Waits implements [driver.Waiter].
func (k *consumer) Waits() driver.Waits {
	w := k.lease.Conn.waits()
	if k.lease.Conn.crowd.Load() || k.spec.TransactionSize > 0 || k.spec.Concurrency > 1 {
		w.Input = k.input.Idle()
	}
	return w
}

// Probe implements [driver.Prober]: it begins a session, which brokers answer, and ends it.
func (k *consumer) Probe(ctx context.Context) error {
	s, err := k.lease.Conn.beginSession(ctx, true)
	if err != nil {
		return k.lease.Conn.explain(k.op, err)
	}
	s.close(ctx)
	return nil
}

// Close implements [driver.Consumer].
func (k *consumer) Close(ctx context.Context) error {
	if k.closed {
		return nil
	}
	k.closed = true
	c := k.lease.Conn
	var err error
	if !k.sub.keep && c.detaches() && !c.Dead() {
		if err = k.session.detach(ctx, &k.link); err != nil && k.sub.durable {
			err = driver.Errorf(driver.ClassOf(err), "close "+k.sub.name, "remove it on the broker",
				"the durable subscription may have stayed behind: %w", c.explain("", err))
		} else {
			err = nil
		}
	}
	k.quit(ctx)
	return err
}

// quit ends the session and gives the connection back.
func (k *consumer) quit(ctx context.Context) {
	if k.session != nil {
		k.session.close(ctx)
	}
	k.free()
	k.sub.free(k.lease.Conn)
	k.lease.Release(ctx)
}

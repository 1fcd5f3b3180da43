package amqp

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// defaultCredit is the number of messages that the broker may send ahead.
const defaultCredit = 1000

// States of a consumer.
const (
	stateOpen    = iota // Run has not begun: there is no credit
	stateRunning        // messages are delivered
	stateEnded          // messages go back to the broker
)

// consumer is a [driver.Consumer]: a receiving link in a session of its own.
//
// On a connection with no other user the connection's reader delivers: a message is not copied and no goroutine is
// woken. On a shared connection, where a slow consumer would then hold up the others, and for transactions, messages
// are copied and held for Run. The credit bounds their number.
//
// Messages are settled in ranges: when the reader has nothing more to read, but at the latest after a quarter of the
// credit.
type consumer struct {
	op      string
	lease   *transport.Lease[*connection]
	session *session
	link    link
	credit  uint32
	// rounds: new credit is given only when all credit is used up. RabbitMQ before 4 computes the remaining credit from
	// the deliveries that its session has seen, not from the deliveries that the queue has sent: credit given while
	// messages are in flight is exceeded, the next value is negative, and the queue sends nothing more.
	rounds  bool
	settled bool // at-most-once
	spec    driver.ConsumerSpec
	input   *driver.Meter // of Run: nothing has arrived
	wait    *driver.Meter // of Run: waits for a transaction
	closed  bool
	address string // for replies

	coordinator *coordinator // nil without transactions

	// Of the reader: a delivery of several frames.
	partial   bool
	partialID uint32
	parts     int  // frames of it
	presettle bool // it is settled
	pieces    []byte
	listed    bool // in connection.settle

	decoder decoder // of the goroutine that delivers: Run while it has messages, else the reader

	mu            sync.Mutex
	state         int
	deliver       func(*driver.Delivery) driver.Verdict
	over          <-chan struct{} // closed when Run must end
	err           error           // why Run must end
	deliveryCount uint32          // of the peer's next delivery; this and limit are serial numbers
	limit         uint32          // the first delivery without credit
	granted       uint32          // the first delivery that never had credit
	unsettled     uint32          // deliveries that have arrived and are not settled
	since         uint32          // deliveries since the last settleAll
	acceptedFrom  uint32          // the first delivery to be settled as accepted
	accepted      uint32          // how many deliveries to settle from there
	others        []byte          // dispositions of other states, encoded
	first, last   *held           // messages held for Run, in their order
	spare         *held           // free list
	waiting       int             // messages that are held, or that Run is delivering
	waitingBytes  int
	arrived       chan struct{} // a message is held, or err is set
	room          chan struct{} // waiting has shrunk, or Run has ended

	settling sync.Mutex // keeps frames in the order in which they were made
	frames   []byte
}

// held is a copy of a message. It is reused with its buffer.
type held struct {
	next    *held
	id      uint32
	settled bool
	text    []byte
}

// Consumer implements [driver.Driver].
func (d *amqpDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := "open a consumer on " + spec.From()
	lease, err := d.Acquire(ctx, spec.Connection)
	if err != nil {
		return nil, err
	}
	c, began := lease.Conn, time.Now()
	k := &consumer{
		op: "receive from " + spec.From(), lease: lease, spec: spec,
		credit: uint32(cmp.Or(min(max(spec.Credit, 0), 1<<30), defaultCredit)), //nolint:gosec // in range
		rounds: c.dialect == rabbitmq3, settled: d.cfg.Options.Settle == settleAtMostOnce,
		input: driver.NewMeter(), wait: driver.NewMeter(), arrived: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	// Deliveries of an open transaction are unsettled.
	k.credit = max(k.credit, uint32(2*spec.TransactionSize)) //nolint:gosec // not below 0
	if err := k.open(ctx); err != nil {
		k.quit(ctx)
		return nil, transport.Explain(op, err)
	}
	spec.Connection.Stages.Ended(driver.StageAttach, began)
	return k, nil
}

func (k *consumer) open(ctx context.Context) (err error) {
	c, opts, spec := k.lease.Conn, &k.lease.Conn.driver.cfg.Options, &k.spec
	if spec.TransactionSize > 0 && k.settled {
		return driver.Errorf(driver.ClassUnsupported, "", "leave out -o settle=at-most-once or --tx",
			"messages settled on delivery cannot be in transactions")
	}
	if spec.Failing != driver.Accept && (spec.TransactionSize > 0 || k.settled) {
		return driver.Errorf(driver.ClassUnsupported, "", "leave out --consumer-fail, or --tx and -o settle=at-most-once",
			"a message fails by itself, and is not settled before")
	}
	if err := c.checkConsumer(spec, opts); err != nil {
		return err
	}
	if err := k.prepare(ctx, opts); err != nil {
		return err
	}
	k.link.consumer, k.decoder.correlated = k, spec.Correlated
	attach := wire.Attach{
		Name: linkName(spec, c.links.Add(1)), Role: wire.RoleReceiver,
		Source: wire.Terminus{
			Kind: wire.DescSource, Address: wire.Some(c.address(spec.Destination)),
			Durable: c.durability(),
		},
		// No max-message-size: a broker might silently drop larger messages.
		Target: wire.Terminus{Kind: wire.DescTarget, Address: wire.Some(spec.Name)},
	}
	if k.settled {
		attach.SenderSettleMode = wire.SenderSettled
	}
	attach.Source.Filters = streamFilters(spec)
	if setSource(&attach.Source, spec); spec.Dynamic {
		attach.Source = c.dynamicSource()
	}
	if err := k.attach(ctx, &attach); err != nil {
		if spec.Selector != "" && conditionOf(err) == wire.CondInvalidField {
			err = driver.Errorf(driver.ClassUnsupported, "", protocol.HintSelector,
				"the broker does not accept the selector %q: %w", spec.Selector, err)
		}
		return err
	}
	if spec.Selector != "" && !k.link.peer.Source.Selector.OK {
		return protocol.IgnoredSelector("")
	}
	if k.settled && k.link.peer.SenderSettleMode == wire.SenderUnsettled {
		return disagrees(opts)
	}
	if k.address, err = k.replyAddress(); err == nil && spec.TransactionSize > 0 {
		k.coordinator, err = newCoordinator(ctx, k.session, spec.Name, k.wait)
	}
	return err
}

// attach attaches the link in a session of its own. RabbitMQ ends the session of the consumer of a stream that it has
// just declared and not started yet, as the first one after its own start: it is asked again.
func (k *consumer) attach(ctx context.Context, frame *wire.Attach) (err error) {
	c := k.lease.Conn
	stream := c.stream(k.spec.Destination, &c.driver.cfg.Options)
	for try := 1; ; try++ {
		if k.session, err = c.beginSession(ctx, false); err != nil {
			return err
		}
		err = k.session.attach(ctx, &k.link, frame)
		if !stream || try == attachTries || conditionOf(err) != wire.CondInternal {
			return err
		}
		k.session.close(ctx)
		select {
		case <-time.After(time.Duration(try) * 50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// prepare puts the token, and declares the queue, or looks for it, where the broker has a management of queues.
func (k *consumer) prepare(ctx context.Context, o *Options) error {
	c := k.lease.Conn
	err := c.authorize(ctx, c.address(k.spec.Destination))
	if err != nil || k.spec.Dynamic || !c.managed(k.spec.Destination, o) {
		return err
	}
	_, err = c.queue(ctx, k.spec.Destination, o)
	return err
}

// Run implements [driver.Consumer].
func (k *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	k.mu.Lock()
	if k.err == nil {
		k.state, k.deliver, k.over = stateRunning, deliver, ctx.Done()
	}
	k.mu.Unlock()
	k.settleAll() // gives the initial credit
	k.lease.Conn.Out.Flush()
	err := k.runHeld(ctx)
	k.mu.Lock()
	k.state = stateEnded
	k.giveBack(k.first) // prefetched, but not delivered
	k.first, k.last, k.spare = nil, nil, nil
	k.mu.Unlock()
	transport.Notify(k.room) // the reader waits for Run no longer, whatever Run has left
	k.settleAll()
	k.withdraw()
	k.lease.Conn.Out.Flush()
	if err != nil && ctx.Err() == nil {
		return transport.Explain(k.op, err)
	}
	return nil
}

// next waits until messages are held, and returns them as a list. It returns none when ctx or the consumer has ended.
func (k *consumer) next(ctx context.Context) (*held, error) {
	for ctx.Err() == nil {
		k.mu.Lock()
		first, err := k.first, k.err
		k.first, k.last = nil, nil
		k.mu.Unlock()
		if first != nil || err != nil {
			return first, err
		}
		k.input.Begin()
		select {
		case <-k.arrived:
		case <-ctx.Done():
		}
		k.input.End()
	}
	return nil, nil
}

// each delivers messages that next returned, until ctx ends. It releases the rest to the broker.
func (k *consumer) each(ctx context.Context, h *held, tx *receiveTx) (err error) {
	for h != nil && err == nil && ctx.Err() == nil {
		following := h.next
		h.next = nil
		if tx != nil {
			err = tx.deliver(ctx, h)
		} else {
			err = k.deliverHeld(h)
		}
		h = following
	}
	k.mu.Lock()
	k.giveBack(h)
	k.mu.Unlock()
	return err
}

// giveBack releases messages that were held but not delivered. The lock is held.
func (k *consumer) giveBack(h *held) {
	for h != nil {
		following := h.next
		k.recordVerdict(h.id, h.settled, driver.Release)
		k.releaseHeld(h)
		h = following
	}
}

// runHeld delivers held messages; there are none if the reader delivers. It commits a transaction when no more messages
// come.
func (k *consumer) runHeld(ctx context.Context) error {
	var tx *receiveTx
	if k.spec.TransactionSize > 0 {
		tx = &receiveTx{k: k}
	}
	for {
		wait, stopWaiting := ctx, context.CancelFunc(func() {})
		if tx != nil && tx.n > 0 {
			wait, stopWaiting = context.WithTimeout(ctx, idleCommit)
		}
		h, err := k.next(wait)
		stopWaiting()
		switch {
		case h != nil:
			err = k.each(ctx, h, tx)
		case tx != nil && tx.n > 0:
			err = cmp.Or(err, tx.commit(context.WithoutCancel(ctx)))
		}
		if err != nil || h == nil && ctx.Err() != nil {
			return err
		}
		if tx == nil {
			k.settleAll()
			k.lease.Conn.Out.Flush()
		}
	}
}

// deliverHeld delivers a held message.
func (k *consumer) deliverHeld(h *held) error {
	d, err := k.decoder.decode(k.lease.Conn, h.text)
	if err != nil {
		return err
	}
	v := k.deliver(d)
	k.mu.Lock()
	k.recordVerdict(h.id, h.settled, v)
	k.releaseHeld(h)
	due := k.since >= max(k.credit/4, 1)
	k.mu.Unlock()
	if due {
		k.settleAll()
		k.lease.Conn.Out.Flush()
	}
	return nil
}

// stop ends the consumer because the broker or the connection has ended it.
func (k *consumer) stop(why error) {
	k.mu.Lock()
	if k.err == nil {
		k.err = why
	}
	k.mu.Unlock()
	transport.Notify(k.arrived)
	transport.Notify(k.room)
}

// Host implements [driver.Located].
func (k *consumer) Host() string { return k.lease.Conn.Host() }

// Waits implements [driver.Waiter].
func (k *consumer) Waits() driver.Waits {
	w := driver.Waits{Reader: k.lease.Conn.Raw.Reading()}
	if k.lease.Conn.WasShared.Load() || k.spec.TransactionSize > 0 {
		w.Input = k.input.Idle()
	}
	return w
}

// Probe implements [driver.Prober]: it begins a session, which brokers answer, and ends it. IBM MQ allows
// one session only: it is asked for its flow state.
func (k *consumer) Probe(ctx context.Context) error {
	if k.lease.Conn.dialect == ibmmq {
		return transport.Explain(k.op, k.session.echo(ctx))
	}
	s, err := k.lease.Conn.beginSession(ctx, true)
	if err != nil {
		return transport.Explain(k.op, err)
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
	k.lease.Leave(ctx, k.spec.Connection.Stages, func(ctx context.Context) {
		if keep := k.spec.Durable && k.spec.KeepSubscription; !keep && c.detaches() && !c.Dead() {
			if failed := k.session.detach(ctx, &k.link); failed != nil && k.spec.Durable {
				err = protocol.LeftBehind("close "+k.spec.Subscription, transport.Explain("", failed))
			}
		}
		k.quit(ctx)
	})
	return err
}

// quit ends the session and releases the connection.
func (k *consumer) quit(ctx context.Context) {
	if k.session != nil {
		k.session.close(ctx)
	}
	k.lease.Release(ctx)
}

// Names of subscriptions follow the JMS mapping of qpid-jms, which Artemis understands: a subscription is identified by
// the container ID and the link name up to its first bar; the text after the bar makes the names of links that share a
// subscription differ. For shared subscriptions without a client ID, the capability "global" removes the container ID
// from the identity.

// isGlobal reports whether a subscription is shared by clients without a client ID.
func isGlobal(spec *driver.ConsumerSpec) bool { return spec.Shared && spec.Connection.ClientID == "" }

// linkName returns the link name of a consumer with a number of its own on its connection: links of the same name and
// direction would steal each other. Two consumers that claim one identity do so: the broker decides.
func linkName(spec *driver.ConsumerSpec, number uint64) string {
	name := cmp.Or(spec.Subscription, spec.Name)
	switch {
	case isGlobal(spec):
		return name + "|global" + strconv.FormatUint(number, 10)
	case spec.Shared || !spec.Durable:
		return name + "|" + strconv.FormatUint(number, 10)
	}
	return name
}

// streamFilters returns the filters of a source that is a stream (RabbitMQ's documentation of streams, "AMQP 1.0").
func streamFilters(spec *driver.ConsumerSpec) (list []wire.Filter) {
	add := func(name string, value []byte) {
		list = append(list, wire.Filter{Name: "rabbitmq:stream-" + name, Value: value})
	}
	offset, _ := driver.ParseStreamOffset(spec.StreamOffset, time.Now()) // checked before the run; "" is none
	switch v := offset.(type) {
	case string:
		add("offset-spec", wire.AppendStr(nil, v))
	case uint64:
		add("offset-spec", wire.AppendUlong(nil, v))
	case time.Time:
		add("offset-spec", wire.AppendTimestamp(nil, v.UnixMilli()))
	}
	if spec.StreamFilter != "" {
		values := wire.BeginList(nil)
		all := strings.Split(spec.StreamFilter, ",")
		for _, v := range all {
			values = wire.AppendStr(values, v)
		}
		wire.EndCompound(values, 0, len(all))
		add("filter", values)
		add("match-unfiltered", wire.AppendBool(nil, spec.StreamUnfiltered))
	}
	return list
}

// setSource sets the kind of a consumer's source, its selector and its subscription (Messaging, section 3.5.3).
func setSource(source *wire.Terminus, spec *driver.ConsumerSpec) {
	source.Capabilities = []string{spec.Destination.Kind.String()}
	if spec.Selector != "" {
		source.Selector = wire.Some(spec.Selector)
	}
	if spec.Shared {
		source.Capabilities = append(source.Capabilities, "shared")
	}
	if isGlobal(spec) {
		source.Capabilities = append(source.Capabilities, "global")
	}
	switch {
	case spec.Durable:
		source.Durable, source.ExpiryPolicy = wire.DurableUnsettledState, wire.ExpireNever
	case spec.Destination.Kind == driver.Topic:
		source.ExpiryPolicy = wire.ExpireLinkDetach
	}
}

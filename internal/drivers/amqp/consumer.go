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
// On a connection of its own the reader of the connection delivers: a message is not copied and no goroutine is woken for
// it. On a shared connection, where that would let a slow consumer hold up the others, and for transactions and concurrent
// deliveries, messages are copied and held for Run. The credit bounds how many.
//
// Messages are settled in ranges: when the reader has nothing more to read, but at the latest after a quarter of the credit.
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
	free    func() // ends what prepareReceive began
	spec    driver.ConsumerSpec
	input   *driver.Meter // of Run: nothing has arrived
	wait    *driver.Meter // of Run: waits for a transaction
	closed  bool

	coordinator *coordinator // nil without transactions

	// Of the reader: a delivery of several frames.
	partial   bool
	partialID uint32
	presettle bool // it is settled
	pieces    []byte
	listed    bool // in connection.settle
	reader    decoder

	mu            sync.Mutex
	state         int
	deliver       func(*driver.Delivery) driver.Verdict
	err           error  // why it has ended
	deliveryCount uint32 // of the peer's next delivery; this and limit are serial numbers
	limit         uint32 // the first that we gave no credit for
	granted       uint32 // the first that we never gave credit for
	unsettled     uint32 // deliveries that have arrived and are not settled
	since         uint32 // deliveries since the last settleAll
	accepted      span   // that are to be settled as accepted
	others        []byte // dispositions of other states, encoded
	held          []held
	spare         []held
	waiting       int // messages that are held, or were taken from there and are being delivered
	waitingBytes  int
	arrived       chan struct{} // held has grown, or err is set
	room          chan struct{} // waiting has shrunk, or Run has ended

	settling sync.Mutex // frames are put in the order in which they were made
	frames   []byte
}

// span is a range of delivery IDs.
type span struct {
	first, last uint32
	n           uint32
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
		rounds: c.creditInRounds(), settled: d.cfg.opts.Settle == settleAtMostOnce, free: func() {}, spec: spec,
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
	c, opts, spec := k.lease.Conn, &k.lease.Conn.driver.cfg.opts, &k.spec
	if spec.TransactionSize > 0 && k.settled {
		return driver.Errorf(driver.ClassUnsupported, op, "leave out -o settle=at-most-once or --tx",
			"what the broker forgets when it sends it cannot be part of a transaction")
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
		Source: wire.Terminus{Kind: wire.DescSource, Address: wire.Some(c.address(spec.Destination)), Durable: c.durability()},
		// Without a max-message-size: a broker might drop what is larger, and say nothing.
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

// begin notes where the peer's delivery count begins. The session's lock is held.
func (k *consumer) begin(initial uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deliveryCount, k.limit, k.granted = initial, initial, initial
}

// flowState returns delivery count and credit for a flow.
func (k *consumer) flowState() (count, credit wire.Opt[uint32]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return wire.Some(k.deliveryCount), wire.Some(k.left())
}

// left returns how much credit the peer has. The lock is held.
func (k *consumer) left() uint32 {
	if n := int32(k.limit - k.deliveryCount); n > 0 { //nolint:gosec // serial numbers, and credit is at most 2^30
		return uint32(n)
	}
	return 0 // some were under way when it was taken back
}

// transfer takes a frame of a delivery. It is called by the reader.
func (k *consumer) transfer(t *wire.Transfer, payload []byte) error {
	switch {
	case !k.partial && !t.DeliveryID.OK:
		return protocolError("a delivery without an ID")
	case !k.partial && t.DeliveryTag == nil:
		return protocolError("a delivery without a tag")
	case !k.partial:
		k.partialID, k.presettle = t.DeliveryID.V, false
	case t.DeliveryID.OK && t.DeliveryID.V != k.partialID:
		return protocolError("a delivery before the one before it had ended")
	}
	k.presettle = k.presettle || t.Settled
	k.partial = t.More && !t.Aborted
	if t.Aborted {
		k.dropPieces()
		return k.pass()
	}
	if t.More || len(k.pieces) > 0 {
		if err := k.addPiece(payload); err != nil {
			return err
		}
		payload = k.pieces
	}
	if t.More {
		return nil
	}
	err := k.arrive(k.partialID, k.presettle, payload)
	k.dropPieces()
	return err
}

const (
	// maxSections is how many bytes the sections of a message beside its body may have.
	maxSections = 1 << 20
	// maxUnfinished bounds messages that are not whole yet, of all consumers of a connection together, beside the largest one.
	maxUnfinished = 32 << 20
)

// addPiece keeps a part of a message.
func (k *consumer) addPiece(payload []byte) error {
	c := k.lease.Conn
	limit := c.driver.cfg.maxBody + maxSections
	size := len(k.pieces) + len(payload)
	if size > limit {
		return tooLarge(c.driver.cfg.maxBody, size)
	}
	if c.unfinished += len(payload); c.unfinished > limit+maxUnfinished {
		return driver.Errorf(driver.ClassTooLarge, "", "use more connections, or smaller messages",
			"the broker sent parts of messages of more than %d bytes together, and did not finish them", limit+maxUnfinished)
	}
	if size > cap(k.pieces) { // twice the bytes that have arrived, at most
		k.pieces = append(c.driver.large.get(min(max(2*size, firstPieces), limit)), k.pieces...)
	}
	k.pieces = append(k.pieces, payload...)
	return nil
}

// firstPieces is the least room for a message of several frames.
const firstPieces = 64 << 10

// dropPieces forgets a message that was taken, or given up.
func (k *consumer) dropPieces() {
	k.lease.Conn.unfinished -= len(k.pieces)
	if cap(k.pieces) > maxScratch {
		k.lease.Conn.driver.large.put(k.pieces)
		k.pieces = nil
	}
	k.pieces = k.pieces[:0]
}

func tooLarge(limit, size int) error {
	return driver.Errorf(driver.ClassTooLarge, "", "--max-message-size SIZE accepts larger messages",
		"the broker sent a message of at least %d bytes, and perfmq accepts at most %d", size, limit)
}

// count counts a delivery that has begun and checks that there was credit for it. The lock is held. Brokers are allowed as much
// again, for those that lose count.
func (k *consumer) count() error {
	k.deliveryCount++
	if over := int32(k.deliveryCount - k.granted); over > 0 && uint32(over) > k.credit { //nolint:gosec // serial numbers
		return protocolError("more than twice as many messages as it had credit for")
	}
	return nil
}

// pass counts a delivery that was aborted: it is not delivered, but used up credit.
func (k *consumer) pass() error {
	k.mu.Lock()
	err := k.count()
	k.mu.Unlock()
	k.list()
	return err
}

// list has the reader settle, when it has nothing more to read.
func (k *consumer) list() {
	if !k.listed {
		k.listed = true
		k.lease.Conn.settle = append(k.lease.Conn.settle, k)
	}
}

// arrive takes a whole message. It is called by the reader.
func (k *consumer) arrive(id uint32, settled bool, payload []byte) error {
	if len(payload) == 0 {
		return protocolError("a delivery without a message")
	}
	c := k.lease.Conn
	k.mu.Lock()
	for k.full() { // Run makes room
		k.mu.Unlock()
		select {
		case <-k.room:
		case <-c.failed:
			return c.why()
		}
		k.mu.Lock()
	}
	err := k.count()
	k.unsettled++
	k.since++
	due := false
	switch {
	case err != nil:
	case k.state != stateRunning:
		k.note(id, settled, driver.Release)
		due = true
	case !k.holds():
		err = k.deliverNow(id, settled, payload)
		due = k.since >= max(k.credit/4, 1)
	default:
		err = k.hold(id, settled, payload)
	}
	k.mu.Unlock()
	switch {
	case err != nil:
		return err
	case due:
		k.settleAll()
		c.out.Flush()
	default:
		k.list()
	}
	return nil
}

// holds reports whether messages are held for Run. The lock is held.
func (k *consumer) holds() bool {
	return k.spec.TransactionSize > 0 || k.spec.Concurrency > 1 || k.waiting > 0 || k.lease.Conn.crowd.Load()
}

const (
	// maxHeld is how many bytes of messages a consumer holds before the reader waits for Run.
	maxHeld = 16 << 20
	// maxTransacted bounds them where the reader must not wait, as Run waits for its broker's answers.
	maxTransacted = 96 << 20
)

// full reports whether the reader is to wait until Run has delivered messages that are held. The lock is held.
func (k *consumer) full() bool {
	return k.waitingBytes >= maxHeld && k.spec.TransactionSize == 0 && k.state == stateRunning && k.err == nil
}

// deliverNow delivers a message. The lock is held.
func (k *consumer) deliverNow(id uint32, settled bool, payload []byte) error {
	d, err := k.reader.decode(k.lease.Conn, payload)
	if err != nil {
		return err
	}
	k.note(id, settled, k.deliver(d))
	return nil
}

// hold keeps a copy of a message for Run. The lock is held.
func (k *consumer) hold(id uint32, settled bool, payload []byte) error {
	if limit := k.lease.Conn.driver.cfg.maxBody; len(payload) > limit+maxSections {
		return tooLarge(limit, len(payload))
	}
	if k.waitingBytes > maxTransacted {
		return driver.Errorf(driver.ClassTooLarge, "", "use a smaller --credit",
			"the messages that the broker sent ahead have more than %d bytes", maxTransacted)
	}
	n := len(k.held)
	if n < cap(k.held) {
		k.held = k.held[:n+1]
	} else {
		k.held = append(k.held, held{})
	}
	h := &k.held[n]
	h.id, h.settled, h.text = id, settled, append(h.text[:0], payload...)
	k.waiting++
	k.waitingBytes += len(payload)
	k.tell()
	return nil
}

// release forgets a message that was held, when it was delivered. The lock is held.
func (k *consumer) release(h *held) {
	k.waiting--
	k.waitingBytes -= len(h.text)
	if cap(h.text) > keptText {
		h.text = nil
	}
	select {
	case k.room <- struct{}{}:
	default:
	}
}

// keptText is the largest buffer of a message that is held for another one.
const keptText = 16 << 10

func (k *consumer) tell() {
	select {
	case k.arrived <- struct{}{}:
	default:
	}
}

// note takes what is to become of a message. The lock is held.
func (k *consumer) note(id uint32, settled bool, v driver.Verdict) {
	a := &k.accepted
	switch {
	case settled:
		k.unsettled--
	case v == driver.Reject || v == driver.Release:
		state := wire.State{Kind: wire.DescReleased}
		if v == driver.Reject {
			state.Kind = wire.DescRejected
		}
		d := wire.Disposition{Role: wire.RoleReceiver, First: id, Last: id, Settled: true, State: state.Append(nil)}
		k.others = d.AppendFrame(k.others, k.session.channel)
		k.unsettled--
	case a.n > 0 && id == a.last+1:
		a.last = id
		a.n++
	default:
		if a.n > 0 {
			k.others = wire.AppendAccepted(k.others, k.session.channel, a.first, a.last, true)
			k.unsettled -= a.n
		}
		*a = span{first: id, last: id, n: 1}
	}
}

// settleAll settles what was delivered, and gives credit for more. It does not wait. The frames leave with the next flush, which
// the reader makes before it waits.
func (k *consumer) settleAll() {
	k.settling.Lock()
	defer k.settling.Unlock()
	s := k.session
	s.mu.Lock()
	nextOut := s.nextOut
	s.mu.Unlock()
	k.mu.Lock()
	b := append(k.frames[:0], k.others...)
	k.others, k.since = k.others[:0], 0
	if a := &k.accepted; a.n > 0 {
		b = wire.AppendAccepted(b, s.channel, a.first, a.last, true)
		k.unsettled -= a.n
		*a = span{}
	}
	b = k.appendCredit(b, nextOut)
	k.frames = b
	k.mu.Unlock()
	if len(b) > 0 {
		_ = k.lease.Conn.gather(k.copyFrames) // an error means that the connection has ended, which Run tells as well
	}
}

func (k *consumer) copyFrames(b []byte) []byte { return append(b, k.frames...) }

// appendCredit gives credit once half of it is used up: as much as makes up for what is neither on its way nor unsettled. The
// lock is held.
func (k *consumer) appendCredit(b []byte, nextOut uint32) []byte {
	if k.state != stateRunning {
		return b
	}
	left := k.left()
	want := k.credit - min(k.unsettled, k.credit)
	if want <= left || left > k.credit/2 || k.rounds && left > 0 {
		return b
	}
	k.limit = k.deliveryCount + want
	if int32(k.limit-k.granted) > 0 { //nolint:gosec // serial numbers
		k.granted = k.limit
	}
	f := wire.Flow{
		NextIncomingID: wire.Some(k.session.nextIn.Load()), IncomingWindow: incomingWindow, NextOutgoingID: nextOut, OutgoingWindow: outgoingWindow,
		Handle: wire.Some(k.link.handle), DeliveryCount: wire.Some(k.deliveryCount), LinkCredit: wire.Some(want),
	}
	return f.AppendFrame(b, k.session.channel)
}

// Run implements [driver.Consumer].
func (k *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	k.mu.Lock()
	if k.err == nil {
		k.state, k.deliver = stateRunning, deliver
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

// withdraw takes the credit back: nothing more is wanted.
func (k *consumer) withdraw() {
	s := k.session
	k.mu.Lock()
	k.limit = k.deliveryCount
	k.mu.Unlock()
	_ = k.lease.Conn.gather(func(b []byte) []byte { return s.appendFlow(b, &k.link, false) })
}

// next returns messages that are held, and waits until there are some. It returns none when ctx or the consumer has ended.
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

// runHeld delivers what is held, one message after the other; nothing, if the reader delivers.
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
		why = errClosed
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

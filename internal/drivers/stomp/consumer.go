package stomp

import (
	"context"
	"strconv"
	"sync"

	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// holdLimit is how many bytes of messages are held for a consumer, or delivered by its Run, before the connection is
	// not read any more. One message more may be.
	holdLimit = 8 << 20
	// heldSize is what a held message takes beside its text, in bytes.
	heldSize = 256
	// keptText is the largest text that each held message keeps memory for. Of what is larger one is kept for all.
	keptText = 64 << 10
	// release is by how much bytes that Run has delivered make room for others, at a time.
	release = holdLimit / 8
	// ackBatch is the largest number of messages that one cumulative ACK covers.
	ackBatch = 256
)

// States of a consumer.
const (
	stateHolding = iota // messages are held: Run has not begun, or has ended, or is busy with those before
	stateDirect         // messages are delivered by the reader
	stateClosed         // messages are ignored
)

// consumer is a [driver.Consumer].
//
// On a connection of its own the reader of the connection delivers: a message is not copied and no goroutine is woken
// for it. On a shared connection, where that would let a slow consumer hold up the others and the receipts of producers,
// and as long as Run is not running, messages are copied and held, up to holdLimit.
type consumer struct {
	conn   *connection
	op     string
	id     uint64 // in conn.consumers, and the id of the subscription
	sub    *subscription
	mode   string // of acknowledgement
	tx     bool
	stream string // of RabbitMQ: whose only consumer it is
	topic  string // of old Artemis: reserved on conn
	batch  int    // messages per ACK

	probes int // so far; of the goroutine that calls Probe

	mu      sync.Mutex
	state   int
	deliver func(*driver.Delivery)
	current driver.Delivery
	held    []heldMessage
	bytes   int           // in held, and in taken as far as it is not delivered
	arrived chan struct{} // held has grown
	unheld  chan struct{} // held has shrunk, or the state has changed
	listed  bool          // in conn.acking
	fault   error         // why no more is delivered: the broker does not deliver what was sent
	closed  bool

	// Of whoever delivers: the reader with the lock in stateDirect, else Run.
	toAck   int    // delivered, not acknowledged, in mode client
	lastAck []byte // what the ACK for them names
	txID    uint64
	taken   []heldMessage // what Run took from held
	left    []heldMessage // of taken, when Run ended
	large   []byte        // memory for a large message that is to be held; guarded by mu
}

// heldMessage is a copy of a message. Its buffer is used again.
type heldMessage struct {
	delivery driver.Delivery
	text     []byte // body and ack
	body     int    // length of the body
}

func (m *heldMessage) ack() []byte { return m.text[m.body:] }

// Consumer implements [driver.Driver].
func (d *stompDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := "open a consumer on " + spec.Destination.String()
	k := &consumer{
		op: "receive from " + spec.Destination.String(), tx: spec.Transacted,
		batch: max(1, min(creditOr(spec.Credit)/4, ackBatch)), arrived: make(chan struct{}, 1), unheld: make(chan struct{}, 1),
	}
	conn, err := d.acquireFor(ctx, &spec, k)
	if err != nil {
		return nil, err
	}
	k.conn = conn
	err = conn.addConsumer(k)
	if err == nil {
		if err = k.subscribe(ctx, spec); err != nil {
			conn.removeConsumer(k)
			k.freeStream()
		}
	}
	if err != nil {
		conn.freeTopic(k.topic)
		conn.release(ctx)
		return nil, conn.explain(op, err)
	}
	return k, nil
}

// Waits implements [driver.Waiter].
func (k *consumer) Waits() driver.Waits { return k.conn.waits() }

// Probe implements [driver.Prober] by a transaction in which nothing happens: all brokers answer that, and nothing else
// that changes nothing.
func (k *consumer) Probe(ctx context.Context) error {
	k.probes++
	id := "perfmq-probe-" + strconv.FormatUint(k.id, 10) + "-" + strconv.Itoa(k.probes)
	for _, command := range []string{frame.BEGIN, frame.ABORT} {
		if err := k.conn.request(ctx, frame.New(command, frame.Transaction, id)); err != nil {
			return k.conn.explain(k.op, err)
		}
	}
	return nil
}

func (k *consumer) subscribe(ctx context.Context, spec driver.ConsumerSpec) (err error) {
	opts := &k.conn.driver.cfg.opts
	if k.sub, err = k.conn.dialect.subscription(spec, opts, strconv.FormatUint(k.id, 10), k.conn.identity); err != nil {
		return err
	}
	if err := k.conn.dialect.checkVersion(k.conn.version, spec, k.conn.identity); err != nil {
		return err
	}
	if err := k.takeStream(&spec); err != nil {
		return err
	}
	k.mode = k.sub.ack
	if err := k.conn.checkAck(k); err != nil {
		return err
	}
	f := frame.New(frame.SUBSCRIBE, k.sub.subscribe...)
	for i := range f.Header.Len() {
		if key, value := f.Header.GetAt(i); !k.conn.version.keeps(value) {
			return driver.Errorf(driver.ClassUnsupported, "", "leave out special characters and blanks around it",
				"STOMP %s cannot carry %q as %s", k.conn.version, value, key)
		}
	}
	k.share(1)
	err = k.conn.request(ctx, f)
	if err != nil {
		k.share(-1)
		if ctx.Err() != nil && k.conn.alive() {
			// The broker may yet come to it: a late answer must not leave a subscription behind.
			_ = k.conn.out.put(func(b []byte) []byte {
				return k.conn.version.appendFrame(b, frame.New(frame.UNSUBSCRIBE, k.sub.end...))
			})
		}
	}
	return err
}

// checkAck refuses what RabbitMQ answers by ending the connection: its cumulative ACK takes the messages of all subscriptions
// of the connection, and the ACK of one that was taken so is an error.
func (c *connection) checkAck(k *consumer) error {
	if c.dialect != rabbitmq || k.mode != ackClient {
		return nil
	}
	for _, other := range *c.consumers.Load() {
		if other != nil && other != k {
			return c.dialect.unsupported("use -o ack=client-individual, or give each consumer a connection of its own",
				"with ack=client the acknowledgement of one consumer takes the messages of all others on its connection")
		}
	}
	return nil
}

// share counts the users of a shared subscription within this driver and returns how many there are.
func (k *consumer) share(n int) int {
	if k.sub.last == "" {
		return 0
	}
	d := k.conn.driver
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shared[k.sub.last] += n
	users := d.shared[k.sub.last]
	if users <= 0 {
		delete(d.shared, k.sub.last)
	}
	return users
}

func (c *connection) alive() bool {
	select {
	case <-c.failed:
		return false
	default:
		return true
	}
}

// take delivers or holds a message. The reader calls it.
func (k *consumer) take(f *inbound) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.state == stateHolding && k.bytes > 0 && k.bytes+len(f.body)+len(f.ack)+heldSize > holdLimit {
		k.mu.Unlock()
		select {
		case <-k.unheld:
		case <-k.conn.failed:
		}
		k.mu.Lock()
		if !k.conn.alive() {
			return errClosed
		}
	}
	if f.encoded && f.id != (driver.ID{}) && f.id.Number != driver.Unnumbered && k.fault == nil {
		k.fault = driver.Errorf(driver.ClassUnsupported, "",
			"set transport.transformer=jms on the AMQP connector (activemq.xml: transportConnector name=\"amqp\") of ActiveMQ Classic",
			"the broker delivers AMQP messages in their AMQP encoding, so that no body is the one that was sent")
		notify(k.arrived)
	}
	if k.fault != nil {
		return nil // not acknowledged: it stays with the broker
	}
	if k.state == stateDirect && k.conn.shared.Load() {
		k.settle() // from here on Run delivers
		k.state = stateHolding
	}
	switch k.state {
	case stateDirect:
		k.current = f.delivery()
		k.handle(&k.current, f.ack)
		if k.toAck > 0 && !k.listed {
			k.listed = true
			k.conn.acking = append(k.conn.acking, k)
		}
	case stateHolding:
		k.hold(f)
	}
	return nil
}

// hold keeps a copy of a message.
func (k *consumer) hold(f *inbound) {
	n := len(k.held)
	if n < cap(k.held) {
		k.held = k.held[:n+1]
	} else {
		k.held = append(k.held, heldMessage{})
	}
	m := &k.held[n]
	if len(f.body) > max(keptText, cap(m.text)) {
		m.text, k.large = k.large, nil
	}
	m.text = append(append(m.text[:0], f.body...), f.ack...)
	m.body = len(f.body)
	m.delivery = f.delivery()
	m.delivery.Body = m.text[:m.body:m.body]
	k.bytes += len(m.text) + heldSize
	if n == 0 {
		notify(k.arrived)
	}
}

// handle delivers a message and settles it.
func (k *consumer) handle(d *driver.Delivery, ack []byte) {
	k.deliver(d)
	switch k.mode {
	case ackClient:
		k.lastAck = append(k.lastAck[:0], ack...)
		if k.toAck++; k.toAck >= k.batch {
			k.settle()
		}
	case ackIndividual:
		k.put(frame.ACK, ack)
	}
}

// acknowledge acknowledges what the reader has delivered.
func (k *consumer) acknowledge() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listed = false
	if k.state == stateDirect {
		k.settle()
	}
}

// settle acknowledges what was delivered, if anything.
func (k *consumer) settle() {
	if k.toAck > 0 {
		k.toAck = 0
		k.put(frame.ACK, k.lastAck)
	}
}

// put writes an ACK or NACK frame, in a transaction of its own if there are any. A failure is one of the connection,
// which Run reports.
func (k *consumer) put(command string, ack []byte) {
	out := k.conn.out
	out.mu.Lock()
	if out.err != nil {
		out.mu.Unlock()
		return
	}
	b := out.buf
	var tx [32]byte
	name := tx[:0]
	if k.tx {
		k.txID++
		name = append(strconv.AppendUint(append(name, 'r'), k.id, 10), '.')
		name = strconv.AppendUint(name, k.txID, 10)
		b = append(append(append(b, "BEGIN\ntransaction:"...), name...), "\n\n\x00"...)
	}
	b = append(b, command...)
	if k.conn.version == v12 {
		b = append(append(b, "\nid:"...), ack...)
	} else {
		b = append(append(b, "\nmessage-id:"...), ack...)
		b = strconv.AppendUint(append(b, "\nsubscription:"...), k.id, 10)
	}
	if k.tx {
		b = append(append(b, "\ntransaction:"...), name...)
		b = append(b, "\n\n\x00COMMIT\ntransaction:"...)
		b = append(b, name...)
	}
	out.buf = append(b, "\n\n\x00"...)
	full := len(out.buf) > outMost
	out.unlock()
	if full {
		k.conn.fail(errUnread())
	}
}

// Run implements [driver.Consumer].
func (k *consumer) Run(ctx context.Context, deliver func(*driver.Delivery)) error {
	k.mu.Lock()
	k.deliver = deliver
	for ctx.Err() == nil && k.conn.alive() {
		if len(k.held) > 0 {
			k.deliverHeld(ctx)
			continue
		}
		k.settle()
		if k.fault != nil {
			break
		}
		if !k.conn.shared.Load() {
			k.state = stateDirect
		}
		k.mu.Unlock()
		select {
		case <-k.arrived:
		case <-ctx.Done():
		case <-k.conn.failed:
		}
		k.mu.Lock()
	}
	k.settle()
	k.state, k.deliver = stateHolding, nil
	fault := k.fault
	k.mu.Unlock()
	if fault != nil {
		return k.conn.explain(k.op, fault)
	}
	if ctx.Err() == nil {
		return k.conn.explain(k.op, k.conn.whyEnded())
	}
	return nil
}

// deliverHeld delivers what was held so far. The lock is held when it begins and ends, and not in between.
func (k *consumer) deliverHeld(ctx context.Context) {
	k.taken, k.held = k.held, k.taken[:0]
	k.mu.Unlock()
	ended, done := ctx.Done(), 0
	for i := range k.taken {
		select {
		case <-ended:
			k.left = k.taken[i:]
			k.mu.Lock()
			k.bytes -= done
			return
		default:
		}
		m := &k.taken[i]
		k.handle(&m.delivery, m.ack())
		if done += len(m.text) + heldSize; done >= release || cap(m.text) > keptText {
			k.mu.Lock()
			k.bytes -= done
			if cap(m.text) > keptText {
				k.large, m.text, m.delivery.Body = m.text, nil, nil
			}
			k.mu.Unlock()
			done = 0
			notify(k.unheld)
		}
	}
	k.mu.Lock()
	k.bytes -= done
	notify(k.unheld)
}

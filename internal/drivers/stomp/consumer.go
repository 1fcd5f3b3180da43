package stomp

import (
	"context"
	"strconv"
	"sync"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// holdLimit is how many bytes of messages are held for a consumer, or delivered by its Run, before the connection
	// is not read any more. One message more may be.
	holdLimit = 8 << 20
	// heldSize is the memory of a held message beside its text, in bytes.
	heldSize = 256
	// keptText is the largest text that each held message keeps memory for. Memory for one larger text is kept for all.
	keptText = 64 << 10
	// release is the number of bytes that Run delivers before it makes room for others; after a text above keptText it
	// makes room at once.
	release = holdLimit / 8
	// ackBatch is the largest number of messages that are delivered before their acknowledgements leave, and that one
	// cumulative ACK covers.
	ackBatch = 256
	// outMost is how many bytes may wait to be written when an acknowledgement is added to them: a broker that does
	// not read but sends would let them grow for ever.
	outMost = 16 << 20
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
// for it. On a shared connection, where that would let a slow consumer hold up the others and the receipts of
// producers, with transactions, whose receipts the reader has to read, for concurrent deliveries, and as long as Run
// is not running, messages are copied and held, up to holdLimit.
type consumer struct {
	lease   *lease
	conn    *connection
	op      string
	id      uint64 // in conn.consumers, and the id of the subscription
	sub     *subscription
	mode    string         // of acknowledgement
	workers int            // how many messages may be delivered at once
	stream  string         // of RabbitMQ: whose only consumer it is
	topic   string         // of old Artemis: reserved on conn
	batch   int            // messages between acknowledgements
	failing driver.Verdict // other than Accept that may be asked for
	nack    []byte         // header line of the NACK for that
	input   *driver.Meter  // of Run: nothing has arrived

	probes int // so far; of the goroutine that calls Probe

	mu      sync.Mutex
	state   int
	deliver func(*driver.Delivery) driver.Verdict
	over    <-chan struct{} // closed when Run is to end
	held    []heldMessage
	bytes   int           // in held, and in taken as far as it is not delivered
	arrived chan struct{} // held has grown, or fault was set
	unheld  chan struct{} // held has shrunk, or the state has changed
	listed  bool          // in conn.acking
	fault   error         // why no more is delivered, as long as the connection has not ended
	closed  bool
	tx      *receiving // nil without transactions

	// Of the goroutine that delivers: the reader with the lock in stateDirect, else Run.
	unacked int           // delivered since the last settle
	lastAck []byte        // the id that the ACK for them names, in mode client
	taken   []heldMessage // the messages that Run took from held
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

// notify leaves a signal in a channel of capacity one.
func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Consumer implements [driver.Driver].
func (d *stompDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := "open a consumer on " + spec.Destination.String()
	if n := spec.TransactionSize; n > 0 { // the messages of an open transaction are not acknowledged
		spec.Credit = max(creditOr(spec.Credit), 2*n)
	}
	k := &consumer{
		op: "receive from " + spec.Destination.String(), batch: max(1, min(creditOr(spec.Credit)/4, ackBatch)),
		workers: spec.Concurrency,
		failing: spec.Failing,
		input:   driver.NewMeter(), arrived: make(chan struct{}, 1), unheld: make(chan struct{}, 1),
	}
	if spec.TransactionSize > 0 {
		k.tx = newReceiving(k, &spec)
	}
	if err := d.acquireFor(ctx, &spec, k); err != nil {
		return nil, err
	}
	k.conn = k.lease.Conn
	var err error
	if k.id, err = enlist(k.conn, &k.conn.consumers, k); err == nil {
		if err = k.subscribe(ctx, &spec); err == nil {
			return k, nil
		}
		delist(k.conn, &k.conn.consumers, k.id)
	}
	err = transport.Explain(op, err)
	k.quit(ctx)
	return nil, err
}

// quit gives back the consumer's stream, topic and lease of the connection.
func (k *consumer) quit(ctx context.Context) {
	k.freeStream()
	k.conn.freeTopic(k.topic)
	k.lease.Release(ctx)
}

// Host implements [driver.Located].
func (k *consumer) Host() string { return k.conn.host }

// Waits implements [driver.Waiter].
func (k *consumer) Waits() driver.Waits {
	w := k.conn.waits()
	if k.lets() {
		w.Input = k.input.Idle()
	}
	return w
}

// holds reports whether messages are held for Run.
func (k *consumer) holds() bool {
	select {
	case <-k.over: // the last delivery has ended Run
		return true
	default:
	}
	return k.lets()
}

// lets reports whether Run delivers, and not the reader.
func (k *consumer) lets() bool { return k.tx != nil || k.workers > 1 || k.conn.crowd.Load() }

// Probe implements [driver.Prober] by a transaction in which nothing happens: all brokers answer that, and nothing else
// that changes nothing.
func (k *consumer) Probe(ctx context.Context) error {
	k.probes++
	id := "perfmq-probe-" + strconv.FormatUint(k.id, 10) + "-" + strconv.Itoa(k.probes)
	for _, command := range []string{wire.BEGIN, wire.ABORT} {
		if err := k.conn.request(ctx, wire.NewFrame(command, "transaction", id)); err != nil {
			return transport.Explain(k.op, err)
		}
	}
	return nil
}

func (k *consumer) subscribe(ctx context.Context, spec *driver.ConsumerSpec) (err error) {
	opts := &k.conn.driver.cfg.Options
	if k.sub, err = k.conn.dialect.subscription(spec, opts, strconv.FormatUint(k.id, 10), k.conn.identity); err != nil {
		return err
	}
	if err := k.conn.dialect.checkVersion(k.conn.version, spec, k.conn.identity); err != nil {
		return err
	}
	if k.nack, err = k.conn.dialect.failing(spec, opts, k.conn.version); err != nil {
		return err
	}
	if err := k.takeStream(spec); err != nil {
		return err
	}
	k.mode = k.sub.ack
	if err := k.conn.checkAck(k); err != nil {
		return err
	}
	f := wire.NewFrame(wire.SUBSCRIBE, k.sub.subscribe...)
	for _, h := range f.Headers {
		if !k.conn.version.Keeps(h.Value) {
			return errCannotCarry(k.conn.version, h.Key, h.Value)
		}
	}
	k.share(1)
	err = k.conn.request(ctx, f)
	if err != nil {
		k.share(-1)
		if ctx.Err() != nil && !k.conn.Dead() {
			// The broker may yet come to it: a late answer must not leave a subscription behind.
			_ = k.conn.putFrame(wire.NewFrame(wire.UNSUBSCRIBE, k.sub.end...))
		}
	}
	return err
}

// checkAck refuses a consumer that would make RabbitMQ end the connection: its cumulative ACK takes the messages of all
// subscriptions of the connection, and a later ACK of one of these messages is an error.
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

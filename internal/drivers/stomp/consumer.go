package stomp

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// ackBatch is the largest number of messages that are delivered before their acknowledgements leave, and that one
// cumulative ACK covers.
const ackBatch = 256

// States of a consumer.
const (
	stateHolding = iota // messages are held: Run has not begun, has ended, or is busy with earlier ones
	stateDirect         // the reader delivers messages
	stateClosed         // messages are ignored
)

// consumer is a [driver.Consumer].
//
// On a connection with no other user the connection's reader delivers: a message is not copied and no goroutine is
// woken. Messages are copied and held, up to holdLimit, on a shared connection, where a slow consumer would hold up the
// others and the receipts of producers; with transactions, because the reader has to read their receipts; and while Run
// is not running.
type consumer struct {
	lease   *transport.Lease[*connection]
	conn    *connection
	op      string
	id      uint64 // in conn.consumers, and the id of the subscription
	sub     *subscription
	batch   int            // messages between acknowledgements
	failing driver.Verdict // the verdict other than Accept that deliver may give
	// correlated: deliveries have what replies need.
	correlated bool
	nack       []byte        // header line of the NACK for failing
	input      *driver.Meter // of Run: nothing has arrived
	tx         *receiving    // nil without transactions
	stages     driver.Stages
	probes     int // so far; of the goroutine that calls Probe
	closed     bool

	mu      sync.Mutex
	state   int
	deliver func(*driver.Delivery) driver.Verdict
	over    <-chan struct{} // closed when Run must end
	held    held            // messages that wait for Run
	bytes   int             // in held, and undelivered in taken
	arrived chan struct{}   // held has grown, or fault was set
	unheld  chan struct{}   // bytes has shrunk, or the state has changed
	listed  bool            // in conn.acking
	fault   error           // why delivery has stopped, as long as the connection has not ended

	// Of the delivering goroutine: the reader with the lock in stateDirect, else Run.
	unacked int    // delivered since the last settle
	lastAck []byte // the id for their cumulative ACK
	taken   held   // messages that Run took from held; done counts the delivered ones
	done    int
}

// Consumer implements [driver.Driver].
func (d *stompDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	if n := spec.TransactionSize; n > 0 { // messages of an open transaction are not acknowledged
		spec.Credit = max(creditOr(spec.Credit), 2*n)
	}
	k := &consumer{
		op: "receive from " + spec.From(), batch: max(1, min(creditOr(spec.Credit)/4, ackBatch)),
		failing: spec.Failing, correlated: spec.Correlated, input: driver.NewMeter(), stages: spec.Connection.Stages,
		arrived: make(chan struct{}, 1), unheld: make(chan struct{}, 1),
	}
	if spec.TransactionSize > 0 {
		k.tx = newReceiving(k, &spec)
	}
	var err error
	if k.lease, err = d.connect(ctx, &spec); err != nil {
		return nil, err
	}
	k.conn = k.lease.Conn
	began := time.Now()
	if k.id, err = enlist(k.conn, &k.conn.consumers, k); err == nil {
		if k.tx != nil {
			k.tx.receipt.owner = k.id
		}
		if err = k.subscribe(ctx, &spec); err == nil {
			k.stages.Ended(driver.StageAttach, began)
			return k, nil
		}
		delist(k.conn, &k.conn.consumers, k.id)
	}
	k.lease.Release(ctx)
	return nil, transport.Explain("open a consumer on "+spec.From(), err)
}

// connect returns the connection of a consumer: one of its own where the subscriptions of one connection to one topic
// get the same message IDs, so that an acknowledgement of one takes the message of another (Artemis before 2.33,
// ARTEMIS-4649).
func (d *stompDriver) connect(
	ctx context.Context, spec *driver.ConsumerSpec,
) (lease *transport.Lease[*connection], err error) {
	lease, err = d.acquire(ctx, spec.Connection)
	if err != nil || spec.Destination.Kind != driver.Topic || spec.Dynamic || lease.Conn.dialect != artemis {
		return lease, err
	}
	if _, version := protocol.STOMPServer(lease.Conn.server); !protocol.Before(version, 2, 33) {
		return lease, nil
	}
	defer lease.Release(ctx)
	own := spec.Connection
	own.Key += "\x00" + strconv.FormatUint(d.consumers.Add(1), 10)
	return d.acquire(ctx, own)
}

// Address implements [driver.Addressed].
func (k *consumer) Address() string { return k.sub.address }

// Host implements [driver.Located].
func (k *consumer) Host() string { return k.conn.Host() }

// Waits implements [driver.Waiter].
func (k *consumer) Waits() driver.Waits {
	w := driver.Waits{Reader: k.conn.Raw.Reading()}
	if k.runDelivers() {
		w.Input = k.input.Idle()
	}
	return w
}

// runDelivers reports whether Run delivers instead of the reader.
func (k *consumer) runDelivers() bool { return k.tx != nil || k.conn.WasShared.Load() }

// Probe implements [driver.Prober] with an empty transaction: all brokers answer that, and no other frame without an
// effect.
func (k *consumer) Probe(ctx context.Context) error {
	k.probes++
	id := "perfmq-probe-" + strconv.FormatUint(k.id, 10) + "-" + strconv.Itoa(k.probes)
	for _, command := range []string{wire.BEGIN, wire.ABORT} {
		if err := k.conn.request(ctx, command, "transaction", id); err != nil {
			return transport.Explain(k.op, err)
		}
	}
	return nil
}

func (k *consumer) subscribe(ctx context.Context, spec *driver.ConsumerSpec) (err error) {
	c, opts := k.conn, &k.conn.driver.cfg.Options
	if k.sub, err = c.dialect.subscription(spec, opts, strconv.FormatUint(k.id, 10), c.identity); err != nil {
		return err
	}
	_, version := protocol.STOMPServer(c.server)
	err = c.dialect.refuse(spec.StreamFilter != "" && protocol.Before(version, 3, 13), "leave out --stream-filter",
		"streams have filters from 3.13 on")
	if err != nil {
		return err
	}
	if spec.Failing == driver.Reject {
		k.nack = []byte("\nrequeue:false") // otherwise RabbitMQ and the embedded broker deliver the message again
	}
	for header := range slices.Chunk(k.sub.subscribe, 2) {
		if !wire.Carries(header[1]) {
			return errCannotCarry(header[0], header[1])
		}
	}
	k.share(1)
	err = c.request(ctx, wire.SUBSCRIBE, k.sub.subscribe...)
	if err != nil {
		k.share(-1)
		if ctx.Err() != nil && !c.Dead() {
			// The broker may still process it: a late answer must not leave a subscription behind.
			_ = c.putFrame(wire.NewFrame(wire.UNSUBSCRIBE, "id", k.sub.id))
		}
	}
	return err
}

// share adds n to the users of a shared subscription within this driver and returns their number.
func (k *consumer) share(n int) int {
	if k.sub.last == "" {
		return 0
	}
	return k.conn.driver.use("shared\x00"+k.sub.last, n)
}

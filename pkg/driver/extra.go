package driver

import (
	"context"
	"sync/atomic"
	"time"
)

// Counting is implemented by producers and consumers with counters that are specific to their protocol. The engine
// finds it by type assertion and adds up counters of the same name.
type Counting interface {
	// Counters returns the counters in the order in which to print them, always the same counters for one producer or
	// consumer. It may be called at any time, also after Close, and by any goroutine.
	Counters() []Counter
}

// Counter is a count that is specific to a protocol.
type Counter struct {
	// Name is lower case, words joined by hyphens: "tx-checks".
	Name string
	// Help describes the count in one line.
	Help string
	// Value counts from the opening of the producer or consumer.
	Value uint64
}

// Prober is implemented by consumers that can ask their broker for a sign of life.
type Prober interface {
	// Probe asks the broker for an answer, on the consumer's own connection if the protocol allows, and returns nil when
	// the answer has come. It must not change anything at the broker. A client that reconnects by itself may be without a
	// connection although the broker answers: its consumers return nil only when they receive. Probe may be called while
	// Run is running, by one goroutine at a time, and not after Close. It returns soon after ctx ends.
	Probe(ctx context.Context) error
}

// Watched is implemented by producers that notice the end of their connection, session or link between two sends.
type Watched interface {
	// OnEnd sets the function to call when nothing more can be sent, with the reason that Send returns from then on. The
	// function is called exactly once, and at once if that is so already, by any goroutine. It does not block. For the end
	// by Close it need not be called. OnEnd is called once.
	OnEnd(func(why error))
}

// Addressed is implemented by a [Consumer] with [ConsumerSpec.Correlated].
type Addressed interface {
	// Address returns the address of the consumer's destination as [Message.ReplyTo] of the same protocol carries it,
	// of at most [MaxAddress] bytes.
	Address() string
}

// MaxAddress is the length in bytes of the longest address that a driver accepts from a broker for replies.
const MaxAddress = 1024

// Connector is implemented by a [Driver] that can open a connection for a user that neither sends nor receives.
type Connector interface {
	// Connect opens the connection that spec names, and logs in.
	Connect(ctx context.Context, spec Connection) (Held, error)
}

// Held is such a connection.
type Held interface {
	Watched
	// Close ends the connection. Later calls return nil.
	Close(ctx context.Context) error
}

// Located is implemented by producers and consumers that open a connection to one of the hosts in the URL.
type Located interface {
	// Host returns the host to which the connection was opened, as [Factory.Hosts] names it. It may be called at any
	// time, also after Close, and by any goroutine.
	Host() string
}

// Identified is implemented by a [Driver] that learns the broker's product.
type Identified interface {
	// Broker returns product and version as the broker reported them when the last connection was opened, of at most
	// [MaxBrokerText] bytes each: "apache-activemq-artemis", "2.40.0". Both are empty until a connection was opened;
	// version alone is empty if the broker does not report it. The texts come from the peer: escape them before they are
	// printed. It may be called at any time, also after Close, and by any goroutine.
	Broker() (product, version string)
}

// MaxBrokerText is the length in bytes to which drivers cut the product and the version that a broker reports.
const MaxBrokerText = 200

// Inspector is implemented by a [Driver] that can ask the broker for its own counters of destinations.
type Inspector interface {
	// Inspect returns the broker's counters of each destination, in the order of destinations. It uses a connection of its
	// own, which [Driver.Close] closes, and may be called while messages are sent and received, by one goroutine at a
	// time. An error of [ClassUnsupported] or [ClassAuth] means that this broker, or this user, never gets the counters:
	// the caller need not try again.
	Inspect(ctx context.Context, destinations []Destination) ([]DestinationCount, error)
}

// DestinationCount are a broker's own counters of a destination. If the destination does not exist at the broker, all
// are known to be zero.
type DestinationCount struct {
	// Depth is the number of messages at the destination, including messages sent to consumers and not settled; of a
	// topic, at all subscriptions together.
	Depth Count
	// Added counts the messages that the destination got since the broker started to count, Acknowledged the messages
	// that a queue's consumers have settled for good. A counter that has decreased was reset.
	Added, Acknowledged Count
	// Consumers is the number of consumers.
	Consumers Count
}

// Count is a number that may not be known.
type Count struct {
	N     uint64
	Known bool
}

// Counted returns a known count.
func Counted(n uint64) Count { return Count{N: n, Known: true} }

// NoDestination returns the counters of a destination that the broker does not have.
func NoDestination() DestinationCount {
	none := Counted(0)
	return DestinationCount{Depth: none, Added: none, Acknowledged: none, Consumers: none}
}

// Plus returns the sum; it is known if both are known.
func (c Count) Plus(d Count) Count { return Count{N: c.N + d.N, Known: c.Known && d.Known} }

// Waiter is implemented by producers and consumers that measure their waits by cause. From these waits the engine
// reports whether the broker or perfmq limits a load: goroutines that never wait are at perfmq's limit.
type Waiter interface {
	// Waits returns the waits of the worker since it was opened, a wait in progress included. It may be called at any
	// time, also after Close, and by any goroutine.
	Waits() Waits
}

// Waits are the waits of a producer or consumer by cause. An unknown wait is zero.
type Waits struct {
	// Credit is how Send waited for the broker's permission to send: link credit, a session window, room in a queue.
	Credit Wait
	// Socket is how Send waited for a broker that did not read: buffers and the network were full.
	Socket Wait
	// Answer is how Send waited for an answer of the broker: to the message itself, for synchronous sends, or to an
	// earlier one, see [InFlight].
	Answer Wait
	// Input is the time that a consumer had no message to deliver.
	Input Idle
	// Reader is the time that the goroutine that reads the worker's connection waited for bytes from the broker.
	// Workers that share a connection share this goroutine.
	Reader Idle
}

// Wait is the number and the time of a goroutine's waits.
type Wait struct {
	Times uint64
	Time  time.Duration
}

// Idle is the time that a goroutine has waited, if known.
type Idle struct {
	Known bool
	Time  time.Duration
}

// Meter measures the waits of one goroutine. The zero value is not usable. Only that goroutine calls Begin and End, in
// turn; Wait is safe for concurrent use.
type Meter struct {
	start time.Time
	times atomic.Uint64
	// state is the sum of the waits in nanoseconds, doubled; during a wait, minus the beginning of the wait since start,
	// plus one. One word, so that a reader sees both or neither.
	state atomic.Int64
}

// NewMeter returns a meter that has measured nothing.
func NewMeter() *Meter { return &Meter{start: time.Now()} }

// Begin says that the goroutine begins to wait.
func (m *Meter) Begin() {
	m.times.Add(1)
	m.state.Store((m.state.Load()>>1-int64(time.Since(m.start)))<<1 | 1)
}

// End says that the wait is over.
func (m *Meter) End() { m.state.Store((m.state.Load()>>1 + int64(time.Since(m.start))) << 1) }

// Wait returns the waits until now.
func (m *Meter) Wait() Wait {
	w, state := Wait{Times: m.times.Load()}, m.state.Load()
	if w.Time = time.Duration(state >> 1); state&1 != 0 {
		w.Time += time.Since(m.start)
	}
	return w
}

// Idle returns the time that the goroutine has waited until now.
func (m *Meter) Idle() Idle { return Idle{Known: true, Time: m.Wait().Time} }

// Package driver is the contract between perfmq's load engine and a messaging protocol.
//
// A protocol is a [Factory]. It opens a [Driver] for one URL; the driver opens any number of [Producer] and [Consumer]
// values over connections that it manages. The engine owns the load: when to send, how many messages may be in flight,
// what the latencies are. A driver only moves messages and tells the truth about each of them, exactly once.
//
// # Sending
//
// The engine names each message in flight with a [Slot]. [Producer.Send] hands a message over and returns; later, from
// any goroutine, the driver calls [Done] with that slot and the [Outcome]. The two never overlap in meaning:
//
//   - Send returned nil: Done is called exactly once, possibly before Send returns.
//   - Send returned an error: nothing of the message can have reached the broker and Done is not called.
//
// A driver that cannot tell whether a message left must return nil and report [Unknown].
//
// # Receiving
//
// [Consumer.Run] calls deliver for each message, one at a time, and settles the message after deliver has returned.
//
// # Closing
//
// Every call that waits takes a context and returns soon after it ends. After Close has returned, a driver makes no more
// callbacks and leaves no goroutine, connection or (unless it was asked to keep them) subscription behind.
//
// The package drivertest holds the conformance suite that every driver passes on its real broker.
package driver

import (
	"context"
	"time"
)

// Slot names a message in flight of one producer: 0 <= Slot < [ProducerSpec.MaxPending]. The engine uses a slot again
// only after Done was called for it.
type Slot uint32

// Done reports the end of a send. A driver calls it exactly once for each Send that returned nil, from any goroutine,
// even before that Send returns. It does not block and is safe for concurrent use. The moment of the call is the moment
// of completion in the engine's measurement, so call it first and tidy up afterwards.
type Done func(Slot, Outcome)

// Producer sends messages to one destination.
type Producer interface {
	// Send hands m to the broker and may block: for credit of the broker, for a full TCP buffer. Only one goroutine
	// calls it at a time. When ctx ends while it waits for leave to send, it returns an error for which
	// errors.Is(err, ctx.Err()) is true: the message was not sent. The driver must not retain m after Send returns,
	// and may read m.Body until Done is called.
	Send(ctx context.Context, m *Message) error

	// Close waits until what is in flight is settled or ctx ends, reports the rest as [Unknown], and closes. All Done
	// calls have been made when it returns. Send must not be running. Later calls return nil.
	Close(ctx context.Context) error
}

// Flusher is what a [Producer] also implements if a message that was sent may wait for others before it can end, such as
// in a transaction that is not full.
type Flusher interface {
	// Flush lets what was sent so far end without more being sent. It does not wait for that. Call it when no more is
	// to be sent; Send must not be running, and may be called again afterwards.
	Flush(ctx context.Context) error
}

// Consumer receives messages from one destination. It is subscribed when [Driver.Consumer] returns: a message that is
// sent after that will reach it.
type Consumer interface {
	// Run receives until ctx ends, and then returns nil; or until the broker or the connection fails, and then returns
	// an error that wraps an [*Error]. It calls deliver for one message at a time and settles that message afterwards.
	// The Delivery and its Body are valid only during the call. Run is called once.
	Run(ctx context.Context, deliver func(*Delivery)) error

	// Close ends the subscription: a durable one is removed at the broker unless [ConsumerSpec.KeepSubscription] is
	// set. Messages that were prefetched but not delivered go back to the broker. Run must have returned. Later calls
	// return nil.
	Close(ctx context.Context) error
}

// Driver is one broker, as one URL names it. Its methods are safe for concurrent use.
type Driver interface {
	// Producer opens a producer on the connection that spec.Connection names, and that connection if need be.
	Producer(ctx context.Context, spec ProducerSpec, done Done) (Producer, error)
	// Consumer subscribes on the connection that spec.Connection names, and opens that connection if need be.
	Consumer(ctx context.Context, spec ConsumerSpec) (Consumer, error)
	// Close closes all connections. Producers and consumers must have been closed. Later calls return nil.
	Close(ctx context.Context) error
}

// Factory describes a protocol and opens drivers for it. Factories are values in one explicit list; nothing registers
// itself.
type Factory struct {
	// Name is the protocol as the user types it: "amqp".
	Name string
	// Title is the protocol's full name for help texts: "AMQP 1.0".
	Title string
	// Schemes are the URL schemes that select the protocol, the first being the usual one.
	Schemes []string
	// DefaultURL is used when the user gives none.
	DefaultURL string
	// Capabilities tell what the protocol can do, so that the rest can be refused before a run begins.
	Capabilities Capabilities
	// NewOptions returns a pointer to a struct of the protocol's own settings with their defaults set, see [Options].
	NewOptions func() any
	// Check finds what is wrong with opts and the URL without connecting; all mistakes at once, joined. It may be nil.
	Check func(opts OpenOptions) error
	// Open returns a driver for opts.URL. It need not connect yet: connections open with producers and consumers.
	Open func(ctx context.Context, opts OpenOptions) (Driver, error)
}

// Capabilities are what a protocol, as implemented by its driver, can do.
type Capabilities struct {
	Queues              bool // point-to-point destinations
	Topics              bool // publish-subscribe destinations
	DurableSubscription bool // subscriptions that outlive their connection
	SharedSubscription  bool // several consumers share one subscription
	Persistent          bool // the delivery mode can be chosen per message
	TTL                 bool // messages can expire
	Priority            bool // messages have a priority of 0 to 9
	Group               bool // messages can name a message group
	Selector            bool // consumers can filter at the broker
	Transactions        bool // producers can send in transactions (commit-interval)
	TransactedReceive   bool // consumers can receive in transactions (tx)
	TLS                 bool // connections can be encrypted
	Credit              bool // the receive window can be set
}

// OpenOptions are what a driver needs to know about its broker.
type OpenOptions struct {
	// URL is what the user gave: scheme://[user:password@]host[:port][,host[:port]]... Hosts are tried in order.
	URL string
	// User and Password override those of the URL. Both empty means anonymous.
	User, Password string
	// TLS says how to verify the broker and how to present ourselves; it matters only for encrypted schemes.
	TLS TLS
	// ConnectTimeout bounds the opening of one connection, up to and including authentication. It is above zero.
	ConnectTimeout time.Duration
	// MaxBody is the largest body of a message to accept from the broker, in bytes; 0 means [DefaultMaxBody]. A larger
	// one ends the consumer with [ClassTooLarge], before there is memory for it.
	MaxBody int
	// Options is the value of [Factory.NewOptions], filled in.
	Options any
}

// DefaultMaxBody is the largest body that is accepted from a broker if nobody says otherwise, in bytes. A connection needs
// memory for a few bodies at once, and a process is to stay below 256 MiB whatever a broker sends.
const DefaultMaxBody = 16 << 20

// LargestBody returns MaxBody or its default.
func (o *OpenOptions) LargestBody() int {
	if o.MaxBody > 0 {
		return o.MaxBody
	}
	return DefaultMaxBody
}

// Package driver is the contract between perfmq's load engine and a messaging protocol.
//
// A protocol is a [Factory]. It opens a [Driver] for one URL; the driver opens any number of [Producer] and [Consumer]
// values over connections that it manages. The engine owns the load: when to send, the limit of messages in flight,
// and the latencies. A driver only moves messages and reports each of them truthfully, exactly once.
//
// # Sending
//
// A producer is opened with the [Variant]s of its messages, so that a driver encodes each variant once. The engine
// names each message in flight with a [Slot]. [Producer.Send] hands a message over and returns; later, from any
// goroutine, the driver reports that slot and the [Outcome] to the producer's [Completions]. The result of Send decides
// whether the slot is reported:
//
//   - Send returned nil: the slot is reported exactly once, possibly before Send returns.
//   - Send returned an error: the broker cannot have the whole message, and the slot is not reported.
//
// A driver that cannot tell whether a message left must return nil and report [Unknown].
//
// The messages of a producer leave in the order of the calls of Send. A broker, or a client library, may change that
// order.
//
// # Receiving
//
// [Consumer.Run] calls deliver for each message, one at a time, and settles the message as deliver's [Verdict] says,
// after it has returned. Messages are delivered in the order in which they come from the broker.
//
// # Closing
//
// Every call that waits takes a context and returns soon after the context ends. After Close has returned, a driver
// makes no more callbacks and leaves no goroutine, connection or (unless KeepSubscription was set) subscription behind.
//
// # Loss
//
// Once a producer or consumer is open, the broker may end its connection, session, link or subscription. That is a
// loss, whatever reason the broker gives: its class is [ClassConnectionLost] or [ClassClosedByBroker], and the engine
// may open another connection (--reconnect). Exceptions are the reasons that [Class.Permanent] names, which a new
// connection cannot mend. See [Class.LossBy]. A reason that lasts appears again when the producer or consumer is opened
// again, with its own class. Where a broker does not answer the opening of a producer, the first message stands for it.
//
// A driver does not open a lost connection again, unless [Capabilities.Reconnects] is set: its producers and consumers
// have ended, and the engine may open others, on the same Driver.
//
// # Optional interfaces
//
// The engine finds optional interfaces by type assertion. Producers: [Flusher], [TrySender], [Waiter], [Counting],
// [Watched]. Consumers: [Waiter], [Prober], [Counting], [Addressed]. Both: [Located]. Drivers: [Identified],
// [Inspector], [Connector].
//
// The package drivertest holds the conformance suite that every driver passes on its real broker.
package driver

import (
	"cmp"
	"context"
	"time"
)

// Slot names a message in flight of one producer, by a place and a generation. A place is used again once its message
// has ended, each time with another generation, so that a late answer to the earlier message is not taken for an answer
// to the later one. Drivers report the Slot unchanged.
type Slot uint64

// NewSlot returns the slot with that place and generation.
func NewSlot(index, generation uint32) Slot { return Slot(generation)<<32 | Slot(index) }

// Index returns the place: 0 <= Index < [ProducerSpec.MaxPending]. No two messages in flight have the same place. The
// engine may give a message up and use its place again: the driver still reports a late answer to that message, which
// the engine counts, but need not report that no answer will come.
func (s Slot) Index() uint32 { return uint32(s) } //nolint:gosec // the lower half

// Generation returns the generation, which tells the uses of the place apart.
func (s Slot) Generation() uint32 { return uint32(s >> 32) }

// Completions receives the ends of sends. A driver reports each Send that returned nil exactly once, from any
// goroutine, even before that Send returns. The methods do not block and are safe for concurrent use. The engine takes
// the time of the call as the time of completion, so a driver calls them before its own clean-up.
type Completions interface {
	// Done reports the end of one send.
	Done(Slot, Outcome)
	// DoneAll reports sends that ended alike at the same moment, such as a range that one answer confirms. The receiver
	// does not keep the slice.
	DoneAll([]Slot, Outcome)
}

// DoneFunc adapts a function to [Completions].
type DoneFunc func(Slot, Outcome)

// Done implements [Completions].
func (f DoneFunc) Done(slot Slot, o Outcome) { f(slot, o) }

// DoneAll implements [Completions].
func (f DoneFunc) DoneAll(slots []Slot, o Outcome) {
	for _, slot := range slots {
		f(slot, o)
	}
}

// Producer sends messages to one destination.
type Producer interface {
	// Send hands m to the broker and may block: for credit of the broker, for a full TCP buffer. Only one goroutine calls
	// it at a time. If ctx ends while Send waits for permission to send, Send returns an error for which errors.Is(err,
	// ctx.Err()) is true: the message was not sent. The driver must not retain m after Send returns.
	Send(ctx context.Context, m *Message) error

	// Close waits until all messages in flight are settled or ctx ends, reports the rest as [Unknown], and closes. When it
	// returns, all completions have been reported. Send must not be running. Later calls return nil.
	Close(ctx context.Context) error
}

// TrySender is implemented by a [Producer] that can send the next message from the goroutine that reports the end of
// the last one, so that no other goroutine has to be woken.
type TrySender interface {
	// TrySend is a Send that does not wait. It returns whether it has sent m. If not, nothing of m can have reached the
	// broker, the slot is not reported, and Send returns the reason. It may be called from within the producer's own
	// [Completions]; neither Send nor Flush is running then.
	TrySend(m *Message) bool
}

// Flusher is implemented by a [Producer] that may hold a sent message back until more are sent: a message with
// [Message.More], or a message in a transaction that is not full.
type Flusher interface {
	// Flush lets the messages sent so far leave and end without further sends. It does not wait for their ends. Send must
	// not be running, and may be called again afterwards.
	Flush(ctx context.Context) error
}

// Consumer receives messages from one destination. It is subscribed when [Driver.Consumer] returns: messages sent after
// that reach it.
type Consumer interface {
	// Run receives until ctx ends, and then returns nil; or until the broker or the connection fails, and then returns an
	// error that wraps an [*Error]. It calls deliver for each message and settles the message afterwards as the verdict
	// says. Once ctx has ended, perhaps by deliver itself, Run delivers no other message. The Delivery and its Body are
	// valid only during the call. Run is called once.
	Run(ctx context.Context, deliver func(*Delivery) Verdict) error

	// Close ends the subscription: a durable one is removed at the broker unless [ConsumerSpec.KeepSubscription] is
	// set. Messages that were prefetched but not delivered go back to the broker. Run must have returned. Later calls
	// return nil.
	Close(ctx context.Context) error
}

// Verdict is the way to settle a delivered message.
type Verdict uint8

// The verdicts. A verdict other than Accept is given only if [ConsumerSpec.Failing] announced it.
const (
	Accept  Verdict = iota // it was processed
	Reject                 // it cannot be processed: the broker may drop it, or put it elsewhere
	Release                // it was not processed: the broker may deliver it again
)

// String returns "accept", "reject" or "release".
func (v Verdict) String() string {
	names := [...]string{"accept", "reject", "release"}
	if int(v) < len(names) {
		return names[v]
	}
	return "invalid"
}

// Driver is one broker, as one URL names it. Its methods are safe for concurrent use.
type Driver interface {
	// Producer opens a producer on the connection that spec.Connection names. It opens that connection if need be.
	Producer(ctx context.Context, spec ProducerSpec, done Completions) (Producer, error)
	// Consumer subscribes on the connection that spec.Connection names. It opens that connection if need be.
	Consumer(ctx context.Context, spec ConsumerSpec) (Consumer, error)
	// Close closes all connections. Producers and consumers must have been closed. Later calls return nil.
	Close(ctx context.Context) error
}

// Native is the [Factory.Client] of our own data paths.
const Native = "native"

// Factory describes a protocol and opens drivers for it. Factories are values in one explicit list; nothing registers
// itself.
type Factory struct {
	// Name is the protocol as the user types it: "amqp".
	Name string
	// Title is the protocol's full name for help texts: "AMQP 1.0".
	Title string
	// Hidden: the protocol tests perfmq; help omits it.
	Hidden bool
	// Client is the implementation of the protocol: [Native] for our own data path, else the name of a library.
	Client string
	// Program is the program of the release that has the driver; empty for perfmq.
	Program string
	// ByScheme: the client is our own, for URLs of a protocol that have these Schemes, and is chosen by them.
	ByScheme bool
	// Schemes are the URL schemes that select the protocol, the first being the usual one.
	Schemes []string
	// Hosts returns the hosts of a URL as host:port, in the order of the URL; [Connection.Order] and [Located] refer to
	// this list. It returns nil if the text is not a URL. Hosts is nil for a protocol that does not connect to the hosts
	// of the URL, such as RocketMQ: these are name servers.
	Hosts func(url string) []string
	// DefaultURL is the URL if the user gives none.
	DefaultURL string
	// Capabilities are the features of the protocol, so that the rest can be refused before a run begins.
	Capabilities Capabilities
	// Native are the features of the protocol's native driver, for hints about the limits of a client library. The
	// command line sets it for the drivers on libraries; else it is nil.
	Native *Capabilities
	// NewOptions returns a pointer to a struct of the protocol's own settings with their defaults set, see [Options].
	NewOptions func() any
	// Check reports all mistakes in opts and the URL at once, joined, without connecting. It may be nil.
	Check func(opts OpenOptions) error
	// Diagnose asks the hosts of opts.URL, over connections of its own and for two seconds at most, whether they speak
	// another protocol, and returns nil if it finds nothing wrong. The engine calls it when a first connection fails or is
	// not answered. It may be nil.
	Diagnose func(ctx context.Context, opts OpenOptions) error
	// InFlight returns how the client bounds the messages of a producer in flight, given the options of the driver. It is
	// nil for a client without a bound of its own, whose messages all have an answer.
	InFlight func(opts any, spec *ProducerSpec) InFlight
	// Open returns a driver for opts.URL. It need not connect yet: connections open with producers and consumers. It is
	// nil in a program that hands its runs over to Program.
	Open func(ctx context.Context, opts OpenOptions) (Driver, error)
}

// Spoken is the protocol, and the client library if it is one: "AMQP 1.0 over go-amqp".
func (f *Factory) Spoken() string {
	if f.Client == "" || f.Client == Native {
		return f.Title
	}
	return f.Title + " over " + f.Client
}

// InFlight is a client's bound on the messages in flight, beside [ProducerSpec.MaxPending]: Send waits for the broker's
// answer to an earlier one, or to its own, when there are that many. The driver reports these waits as [Waits.Answer].
type InFlight struct {
	Messages int // 0 if there is no bound
	// PerConnection: the producers of a connection share the bound.
	PerConnection bool
	// Hint says how to have more in flight.
	Hint string
	// Unanswered: messages are sent without an answer of the broker. They end when they are written.
	Unanswered bool
}

// Capabilities are the features of a protocol, as implemented by its driver.
type Capabilities struct {
	TLS bool // connections can be encrypted
	// Connects: its drivers are a [Connector].
	Connects bool
	// Reconnects: the client opens a lost connection again by itself, as some client libraries do, without a report of the
	// loss. It has no outages, so --reconnect is for other clients.
	Reconnects bool
	// TimesOut: the driver ends sends without an answer after [ProducerSpec.SendTimeout]. For other drivers the engine
	// does.
	TimesOut bool
	// HidesConnections: the client library opens connections by itself, and shows no [Stage] of them.
	HidesConnections bool
	// Streams: topics may be logs that keep their messages, see [ConsumerSpec.StreamOffset].
	Streams bool
	// Unattached: opening a producer needs no answer of the broker, so there is no [StageAttach].
	Unattached   bool
	Queue, Topic KindCapabilities // by kind of destination
}

// Of returns the features of the protocol for a kind of destination.
func (c *Capabilities) Of(kind Kind) *KindCapabilities {
	if kind == Topic {
		return &c.Topic
	}
	return &c.Queue
}

// KindCapabilities are the features of a protocol for one kind of destination. Without Exists the others have no
// meaning.
type KindCapabilities struct {
	Exists              bool // there are destinations of this kind
	DurableSubscription bool // subscriptions that outlive their connection; topics only
	SharedSubscription  bool // several consumers share one subscription; topics only
	Persistent          bool // the delivery mode can be chosen per message
	TTL                 bool // messages can expire
	Priority            bool // messages have a priority of 0 to 9
	Group               bool // messages can name a message group
	Properties          bool // messages can have the user's properties
	Selector            bool // consumers can filter at the broker
	Transactions        bool // producers can send in transactions (commit-interval)
	TransactedReceive   bool // consumers can receive in transactions (tx)
	Credit              bool // the receive window can be set
	Reject              bool // consumers can reject messages
	Release             bool // consumers can give messages back
	Delay               bool // producers can ask for a delayed delivery
	Text                bool // messages can be text, and receivers can tell text from bytes
	Redelivered         bool // the broker marks messages that it has delivered before
	RequestReply        bool // messages have a reply-to and a correlation ID, and producers can be anonymous
	DynamicReply        bool // consumers can be [ConsumerSpec.Dynamic]
}

// OpenOptions are the settings that a driver needs for its broker.
type OpenOptions struct {
	// URL is as the user gave it: scheme://[user:password@]host[:port][,host[:port]]... Hosts are tried in order, unless
	// [Connection.Order] gives another one.
	URL string `set:"url,daily" section:"Broker" arg:"URL" check:"address" none:"the protocol's" help:"the broker: PROTOCOL://[USER@]HOST[:PORT][,HOST[:PORT]]..."`
	// User and Password override user and password of the URL. Both empty means anonymous.
	User     string `set:"user,daily" arg:"NAME" check:"credential" help:"user name; for its password see PERFMQ_PASSWORD, --password-file"`
	Password string `set:"password,secret" arg:"TEXT" check:"credential" help:"password; others on this host can see it: prefer PERFMQ_PASSWORD"`
	// TLS has the settings for encrypted schemes; other schemes ignore it.
	TLS TLS
	// ConnectTimeout bounds the opening of one connection, up to and including authentication. It is above zero.
	ConnectTimeout time.Duration `set:"connect-timeout" section:"Broker" default:"10s" check:"positive" help:"limit for opening a connection"`
	// MaxBody is the largest body of a message to accept from the broker, in bytes; 0 means [DefaultMaxBody]. A larger
	// body ends the consumer with [ClassTooLarge], before memory is allocated for it.
	MaxBody int
	// Options is the value of [Factory.NewOptions], filled in.
	Options any
}

// DefaultMaxBody is the largest body that is accepted from a broker if [OpenOptions.MaxBody] is 0, in bytes. A
// connection needs memory for a few bodies at once, and the process must stay below 256 MiB with any broker.
const DefaultMaxBody = 16 << 20

// LargestBody returns MaxBody or its default.
func (o *OpenOptions) LargestBody() int { return cmp.Or(max(o.MaxBody, 0), DefaultMaxBody) }

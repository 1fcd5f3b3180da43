package driver

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind is the kind of a destination.
type Kind uint8

// The kinds of destinations.
const (
	Queue Kind = iota // each message goes to one consumer
	Topic             // each message goes to every subscription
)

// String returns "queue" or "topic".
func (k Kind) String() string {
	if k == Topic {
		return "topic"
	}
	return "queue"
}

// Destination is where messages go to and come from.
type Destination struct {
	Kind Kind
	// Name is the address. For ADDRESS::QUEUE (a fully qualified queue name of Artemis) it is that whole text.
	Name string
}

// ParseDestination understands queue://NAME, topic://NAME, and NAME, which is a queue. A name is any UTF-8 text without
// control characters; which of them a broker cannot have is for its driver to say.
func ParseDestination(s string) (Destination, error) {
	d := Destination{Kind: Queue, Name: s}
	if scheme, name, ok := strings.Cut(s, "://"); ok {
		switch scheme {
		case "queue":
		case "topic":
			d.Kind = Topic
		default:
			return d, fmt.Errorf("destination %q: unknown kind %q, must be queue://NAME or topic://NAME", s, scheme)
		}
		d.Name = name
	}
	if kind, name, ok := strings.Cut(d.Name, ":/"); ok && d.Name == s && (kind == "queue" || kind == "topic") {
		return d, fmt.Errorf("destination %q: must be %s://%s", s, kind, strings.TrimLeft(name, "/"))
	}
	if d.Name == "" {
		return d, fmt.Errorf("destination %q has no name", s)
	}
	if !utf8.ValidString(d.Name) || strings.ContainsFunc(d.Name, unicode.IsControl) {
		return d, fmt.Errorf("destination %q: a name cannot have control characters or invalid UTF-8", s)
	}
	return d, nil
}

// String returns the destination as [ParseDestination] reads it, with its kind.
func (d Destination) String() string { return d.Kind.String() + "://" + d.Name }

// Connection names the connection that a producer or consumer uses.
type Connection struct {
	// Key tells connections apart: producers and consumers of one driver that give the same key share a connection.
	Key string
	// Name is the name of the connection on the broker's console, for operators. Where the protocol has only one identity
	// it is overridden by ClientID.
	Name string
	// ClientID is the identity under which durable subscriptions are kept; empty if the user gave none.
	ClientID string
	// Order is the order in which to try the hosts of the URL, by their indexes in [Factory.Hosts]; nil is that of the
	// URL. Of several users of a connection, the one that opens it gives the order.
	Order []int
}

// ProducerSpec describes a producer: its messages and how it sends them.
type ProducerSpec struct {
	Connection  Connection
	Destination Destination
	// Name is unique within the run, for link names and diagnostics: "producer-3".
	Name string
	// MaxPending is the number of slots, at least 1. It may be large (a million) when the user asked for no limit, so let
	// the state per slot grow as slots are used.
	MaxPending int
	// Persistent asks for messages that survive a restart of the broker.
	Persistent bool
	// TTL is the time after which the broker may drop a message; 0 means never.
	TTL time.Duration
	// Delay is the time after its sending before which the broker does not deliver a message; 0 means at once.
	Delay time.Duration
	// Variants are the kinds of messages to send, from 1 to [MaxVariants]. The driver does not change them or their
	// bodies, which may be shared by all producers of a run, and keeps no more copies than it has to.
	Variants []Variant
	// Origin, unless it is zero, travels in the property [IDProperty] of all messages, and then no [Message.ID] does. It
	// says of which run and producer they are.
	Origin ID
	// CommitInterval is the number of messages per transaction; 0 means no transactions.
	CommitInterval int
	// Commits is told of each transaction that has ended. It may be nil.
	Commits Commits
	// SendTimeout is the time after which a driver that [Capabilities.TimesOut] ends a send without an answer as
	// [Unknown]; 0 for its own choice. Others ignore it.
	SendTimeout time.Duration
}

// MaxVariants is how many kinds of messages a producer may have.
const MaxVariants = 1024

// Variant is a kind of messages, prepared when a producer opens.
type Variant struct {
	// Body is the payload.
	Body []byte
	// Text asks for a message of text, whose Body is UTF-8, rather than one of bytes. A driver refuses with
	// [ClassUnsupported] a body that its protocol cannot carry as text.
	Text bool
	// Priority is 0 (lowest) to 9, or -1 for the protocol's default (4 in JMS and AMQP).
	Priority int
	// Group is the message group; empty for none.
	Group string
	// Properties are the user's message properties, in the order given.
	Properties []Property
}

// Commits is told how long a commit took, from its sending to the broker's answer, and whether the broker confirmed it.
// It does not block and is safe for concurrent use.
type Commits func(took time.Duration, confirmed bool)

// Property is a message property of the user.
type Property struct{ Key, Value string }

// ConsumerSpec describes a consumer: its messages and how it receives them.
type ConsumerSpec struct {
	Connection  Connection
	Destination Destination
	// Name is unique within the run, for link names and diagnostics: "consumer-3".
	Name string
	// Credit is how many messages the broker may send ahead; 0 means the driver's default.
	Credit int
	// Selector filters messages at the broker; empty for all.
	Selector string
	// Subscription is the name of the topic subscription; empty for an anonymous one that ends with the consumer.
	Subscription string
	// Durable subscriptions survive their connection.
	Durable bool
	// Shared subscriptions spread their messages over all consumers with the same Subscription (and client ID, if any).
	Shared bool
	// KeepSubscription leaves a durable subscription at the broker when the consumer closes.
	KeepSubscription bool
	// TransactionSize is the number of messages per transaction in which messages are received; 0 means no transactions.
	TransactionSize int
	// Commits is told of each such transaction that has ended. It may be nil.
	Commits Commits
	// Concurrency is how many messages may be delivered at once; 0 and 1 mean one after the other.
	Concurrency int
	// Failing is the verdict that deliver may give instead of [Accept]: [Reject] or [Release]. A driver refuses with
	// [ClassUnsupported] a verdict that it, or this broker, cannot carry out. The zero value is Accept: there is no other.
	Failing Verdict
}

package driver

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
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

// Destination is a place that messages are sent to and received from.
type Destination struct {
	Kind Kind
	// Name is the address. For ADDRESS::QUEUE (a fully qualified queue name of Artemis) it is the whole text.
	Name string
}

// ParseDestination parses queue://NAME, topic://NAME, and NAME, which is a queue. A name is any UTF-8 text without
// control characters; the driver refuses names that its broker cannot have.
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
	// Key separates connections: producers and consumers of one driver with the same key share a connection, unless the
	// client library has one for each. A driver may have further connections to ask the broker questions, and for
	// members of a subscription that the broker knows by their connections.
	Key string
	// Name is the name of the connection on the broker's console, for operators. ClientID overrides it where the protocol
	// has only one identity.
	Name string
	// ClientID is the identity under which durable subscriptions are kept; empty if the user gave none.
	ClientID string
	// Order is the order in which to try the hosts of the URL, by their indexes in [Factory.Hosts]; nil means the order of
	// the URL. Hosts that it leaves out are not tried. If several workers share a connection, the worker that opens it
	// decides the order.
	Order []int
	// Local is the address of this machine from which to connect; the zero value leaves it to the system. A client with
	// [Capabilities.HidesConnections] ignores it.
	Local netip.Addr
	// Stages receives the stages of the producer or consumer that is opened, and later closed. It may be nil.
	Stages Stages
}

// ProducerSpec describes a producer: its messages and how it sends them.
type ProducerSpec struct {
	Connection  Connection
	Destination Destination
	// Name is unique within the run, for link names and diagnostics: "producer-3".
	Name string
	// MaxPending is the number of slots, at least 1. It may be large (a million) when the user asked for no limit, so the
	// state per slot should grow as slots are used.
	MaxPending int `set:"max-pending,daily" roles:"producer,connections" section:"Load" range:"0..1048576" default:"1" help:"messages in flight per producer; 0: no limit. Connections: openings in progress, by default 16, with --rate 1000"`
	// Persistent asks for messages that survive a restart of the broker.
	Persistent bool `set:"persistent,daily" roles:"producer" section:"Message" help:"messages survive a restart of the broker"`
	// Requests: the messages are requests. Each has a [Message.ReplyTo] and a [Message.Correlation].
	Requests bool
	// Anonymous: the producer sends replies. Each goes to its [Message.To]; the Destination is that of the requests.
	// Brokers answer a reply to an address that is gone as they like.
	Anonymous bool
	// Keys is the number of groups of which each message has one, in [Message.Group]; 0 for the groups of the variants.
	Keys int `set:"group-keys" roles:"producer" range:"1..1000000" none:"none" help:"message groups, each at random"`
	// TTL is the time after which the broker may drop a message; 0 means never.
	TTL time.Duration `set:"ttl" roles:"producer" unit:"ms" none:"for ever" help:"time to live; a plain number is milliseconds"`
	// Delay is the time for which the broker holds a message back after its sending; 0 means not at all.
	Delay time.Duration `set:"delivery-delay" roles:"producer" unit:"ms" default:"0s" least:"0|1ms" help:"deliver each message after this time; a plain number is milliseconds"`
	// Variants are the kinds of messages to send, from 1 to [MaxVariants]. All producers of a run may share them and their
	// bodies: the driver does not change them, and keeps no more copies than it needs.
	Variants []Variant
	// Origin, unless it is zero, travels in the property [IDProperty] of all messages, instead of a [Message.ID]. It
	// identifies their run and producer.
	Origin ID
	// CommitInterval is the number of messages per transaction; 0 means no transactions.
	CommitInterval int `set:"commit-interval" none:"no transactions" help:"messages per transaction of a producer"`
	// Commits is called for each transaction that has ended. It may be nil.
	Commits Commits
	// SendTimeout is the time after which a driver with [Capabilities.TimesOut] ends a send without an answer as
	// [Unknown]; 0 lets the driver choose. Other drivers ignore it.
	SendTimeout time.Duration `set:"send-timeout" roles:"producer" section:"Load" default:"0s" least:"0|20ms" help:"a message without an answer after this time ends as unconfirmed; 0: never, over rocketmq by -o send-timeout"`
	// ReplyTimeout is the time after which the sender of a request awaits its reply no longer.
	ReplyTimeout time.Duration `set:"reply-timeout" roles:"requester" default:"30s" least:"1ms" help:"a request without a reply this long after its sending has timed out"`
}

// To names the destination, for messages.
func (s *ProducerSpec) To() string {
	if s.Anonymous {
		return "the addresses for replies"
	}
	return s.Destination.String()
}

// Missing returns the settings of the producer that need a capability which c lacks: "--ttl".
func (s *ProducerSpec) Missing(c *KindCapabilities) []string {
	some := func(asks func(*Variant) bool) bool {
		return slices.ContainsFunc(s.Variants, func(v Variant) bool { return asks(&v) })
	}
	return missing([]need{
		{"the role requester", s.Requests, c.RequestReply},
		{"replies", s.Anonymous, c.RequestReply},
		{"--commit-interval", s.CommitInterval > 0, c.Transactions},
		{"--persistent", s.Persistent, c.Persistent},
		{"--ttl", s.TTL > 0, c.TTL},
		{"--delivery-delay", s.Delay > 0, c.Delay},
		{"--priority", some(func(v *Variant) bool { return v.Priority >= 0 }), c.Priority},
		{"--group-keys", s.Keys > 0, c.Group},
		{"--group", s.Keys == 0 && some(func(v *Variant) bool { return v.Group != "" }), c.Group},
		{"--message-type text", some(func(v *Variant) bool { return v.Text }), c.Text},
		{"--property", some(func(v *Variant) bool { return len(v.Properties) > 0 }), c.Properties},
	})
}

// MaxVariants is the largest number of variants of a producer.
const MaxVariants = 1024

// Variant is a kind of messages, prepared when a producer opens.
type Variant struct {
	// Body is the payload.
	Body []byte
	// Text asks for a text message, with Body as its UTF-8 text, rather than a bytes message. A driver refuses with
	// [ClassUnsupported] a body that its protocol cannot carry as text.
	Text bool `set:"message-type" roles:"producer" section:"Message" words:"bytes,text" default:"bytes" help:"bytes, or text (AMQP: a string, STOMP: no content-length)"`
	// Priority is 0 (lowest) to 9, or -1 for the protocol's default (4 in JMS and AMQP).
	Priority int `set:"priority" roles:"producer" arg:"0-9" unset:"-1" range:"0..9" none:"the protocol's" help:"message priority, 9 is the highest"`
	// Group is the message group; empty for none.
	Group string `set:"group" roles:"producer" arg:"NAME" help:"message group of all messages"`
	// FilterValue is that of [ConsumerSpec.StreamFilter]; empty for none.
	FilterValue string `set:"stream-filter-value" roles:"producer" arg:"TEXT" help:"RabbitMQ's streams: the value by which consumers filter"`
	// Properties are the user's message properties, in the order given. [Message.Values] has the values of some.
	Properties []Property `set:"property,pairs" roles:"producer" arg:"KEY=VALUE" help:"message property; may have the fields of --body-template, and be repeated"`
}

// Varying returns the keys of the properties that vary.
func (v *Variant) Varying() (keys []string) {
	for _, p := range v.Properties {
		if p.Varies {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

// Commits receives the time of a commit, from its sending to the broker's answer, and whether the broker confirmed it.
// It does not block and is safe for concurrent use.
type Commits func(took time.Duration, confirmed bool)

// Property is a message property that the user defined.
type Property struct {
	Key, Value string
	Varies     bool // each message has its own value, no longer than Value
}

// ConsumerSpec describes a consumer: its messages and how it receives them.
type ConsumerSpec struct {
	Connection  Connection
	Destination Destination
	// Name is unique within the run, for link names and diagnostics: "consumer-3".
	Name string
	// Credit is the number of messages that the broker may send ahead; 0 means the driver's default.
	Credit int `set:"credit" roles:"consumer" section:"Consumer" range:"1.." none:"the protocol's" help:"messages that the broker may send ahead"`
	// Selector filters messages at the broker; empty for all.
	Selector string `set:"selector" roles:"consumer" arg:"TEXT" help:"receive only messages that match"`
	// StreamOffset is where the consumer of a stream begins, see [ParseStreamOffset]; empty for the messages to come. A
	// stream is a topic that keeps its messages.
	StreamOffset string `set:"stream-offset" roles:"consumer" arg:"OFFSET" check:"offset" none:"next" help:"RabbitMQ's streams: begin at first, last, next, a number, a time (RFC 3339) or an age (10m)"`
	// StreamFilter has filter values, joined by commas: the broker leaves out the chunks of the stream that have none
	// of them, nor, with StreamUnfiltered, a message without a value. It delivers the others whole.
	StreamFilter     string `set:"stream-filter" roles:"consumer" arg:"TEXT" join:"," help:"RabbitMQ's streams: only chunks with messages of these filter values, joined by commas"`
	StreamUnfiltered bool   `set:"stream-unfiltered" needs:"stream-filter" roles:"consumer" help:"RabbitMQ's streams: with --stream-filter, messages without a filter value as well"`
	// Dynamic asks for a queue that the broker names, for this consumer alone: it begins when the consumer opens and
	// ends when it closes, or with its connection, and its address is not used again. The Destination is that of the
	// requests, whose producer has the same Connection.
	Dynamic bool
	// Correlated: deliveries have ReplyTo, Correlation and MessageID, and the consumer is [Addressed].
	Correlated bool
	// Subscription is the name of the topic subscription; empty for an anonymous subscription, which ends with the
	// consumer.
	Subscription string
	// Durable subscriptions survive their connection.
	Durable bool `set:"durable" roles:"consumer" help:"durable topic subscriptions, removed at the end; needs --clientID"`
	// Shared subscriptions spread their messages over all consumers with the same Subscription (and client ID, if any).
	Shared bool
	// KeepSubscription leaves a durable subscription at the broker when the consumer closes.
	KeepSubscription bool `set:"keep-subscription" needs:"durable" roles:"consumer" help:"leave durable subscriptions at the broker"`
	// TransactionSize is the number of messages per transaction in which messages are received; 0 means no transactions.
	TransactionSize int `set:"tx-size" roles:"consumer" range:"1.." none:"no transactions" help:"messages per transaction of a consumer; implies --tx"`
	// Commits is called for each such transaction that has ended. It may be nil.
	Commits Commits
	// Failing is the verdict that deliver may give instead of [Accept]: [Reject] or [Release]. A driver refuses with
	// [ClassUnsupported] a verdict that it, or this broker, cannot carry out. The zero value is Accept: deliver gives no
	// other verdict.
	Failing Verdict `set:"consumer-fail-as" roles:"consumer" section:"Consumer" arg:"NAME" words:"release,reject" default:"release" help:"what happens to failed messages: release (deliver again) or reject (drop, or dead letters)"`
}

// StreamFirst is the [ConsumerSpec.StreamOffset] of the whole stream.
const StreamFirst = "first"

// ParseStreamOffset parses an offset: "first", "last" and "next" as they are, the number of a message as a uint64, a
// time, or an age before now, as a [time.Time].
func ParseStreamOffset(text string, now time.Time) (any, error) {
	if text == StreamFirst || text == "last" || text == "next" {
		return text, nil
	}
	if n, err := strconv.ParseUint(text, 10, 63); err == nil {
		return n, nil
	}
	if age, err := time.ParseDuration(text); err == nil && age > 0 {
		return now.Add(-age), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Unix() < 0 {
		return nil, errors.New("must be first, last, next, a number, a time (2026-11-30T20:15:00Z), or an age (10m)")
	}
	return at, nil
}

// Streams reports whether the consumer has settings of streams.
func (s *ConsumerSpec) Streams() bool { return s.StreamOffset != "" || s.StreamFilter != "" }

// Partial reports whether the consumer gets some of the messages only, or some of earlier ones: the messages that it
// should get do not follow from the messages that are sent.
func (s *ConsumerSpec) Partial() bool {
	whole := s.StreamOffset == "" || s.StreamOffset == StreamFirst || s.StreamOffset == "next"
	return s.Selector != "" || s.StreamFilter != "" || !whole
}

// From names the destination, for messages.
func (s *ConsumerSpec) From() string {
	if s.Dynamic {
		return "a dynamic queue for replies"
	}
	return s.Destination.String()
}

// Missing returns the settings of the consumer that need a capability which c lacks: "--tx".
func (s *ConsumerSpec) Missing(c *KindCapabilities) []string {
	return missing([]need{
		{"dynamic reply addresses (give --reply-to)", s.Dynamic, c.DynamicReply},
		{"the role responder", s.Correlated && !s.Dynamic, c.RequestReply},
		{"--tx", s.TransactionSize > 0, c.TransactedReceive},
		{"--selector", s.Selector != "", c.Selector},
		{"--credit", s.Credit > 0, c.Credit},
		{"--consumer-fail as reject", s.Failing == Reject, c.Reject},
		{"--consumer-fail as release", s.Failing == Release, c.Release},
		{"--durable", s.Durable, c.DurableSubscription},
		{"--shared", s.Shared, c.SharedSubscription},
	})
}

// need is a setting, and whether it is used and supported.
type need struct {
	setting   string
	used, can bool
}

func missing(needs []need) (settings []string) {
	for _, n := range needs {
		if n.used && !n.can {
			settings = append(settings, n.setting)
		}
	}
	return settings
}

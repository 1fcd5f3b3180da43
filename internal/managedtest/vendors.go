//go:build unix

package managedtest

import (
	"slices"
	"strings"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// Vendor is the documented behavior of a managed broker.
type Vendor struct {
	Name       string
	Mechanisms []string  // that it offers
	Open       wire.Open // its open frame
	Properties []string  // of the open frame: keys and values

	OneSession     bool   // another session ends the connection
	AcceptsOnly    bool   // a receiver's outcome other than accepted ends the connection
	NoTransactions bool   // a coordinator is refused
	MaxMessageSize uint64 // of a link
	NeedsTo        bool   // messages without the property to are rejected, and such with annotations
	TakesTokens    bool   // at $cbs
	DeadLetters    string // the name, below its queue, of the queue of rejected messages

	// Node returns the kind and name of the node that an address and the terminus's capabilities mean, or an error.
	Node func(t *wire.Terminus) (kind, name string, refused *wire.Error)
}

// Kinds of nodes.
const (
	Queue = "queue"
	Topic = "topic"
)

// refuses returns the error with which the broker rejects a message for its form, or nil.
func (v *Vendor) refuses(sections []byte) *wire.Error {
	var m wire.Message
	var properties wire.Properties
	switch {
	case !v.NeedsTo:
	case m.Decode(sections) != nil, properties.Decode(m.Properties) != nil, m.MessageAnnotations != nil:
		return &wire.Error{Condition: wire.CondDecode, Description: "the message cannot be mapped"}
	case properties.To == nil:
		const text = "AMQXR0032E: ClientIdentifier has not specified an address to obtain the destination name."
		return &wire.Error{Condition: wire.CondNotFound, Description: text}
	}
	return nil
}

// ServiceBus is Azure Service Bus: SASL PLAIN with a shared access key or tokens at $cbs, addresses without a prefix,
// subscriptions as TOPIC/Subscriptions/NAME, and a limit for messages.
func ServiceBus() Vendor {
	return Vendor{
		Name: "Azure Service Bus", Mechanisms: []string{"MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL"},
		Open: wire.Open{
			MaxFrameSize: wire.Some[uint32](64 << 10), ChannelMax: wire.Some[uint16](4999), IdleTimeout: 120_000,
		},
		MaxMessageSize: 256 << 10, TakesTokens: true, DeadLetters: "$deadletterqueue",
		Node: func(t *wire.Terminus) (kind, name string, refused *wire.Error) {
			name = strings.ToLower(t.Address.V)
			if strings.Contains(name, "://") {
				const text = "The messaging entity could not be found."
				return "", "", &wire.Error{Condition: wire.CondNotFound, Description: text}
			}
			if topic, subscription, ok := strings.Cut(name, "/subscriptions/"); ok {
				return Queue, topic + "/" + subscription, nil
			}
			if strings.HasPrefix(name, "topic") { // by their names here; a namespace knows its entities
				return Topic, name, nil
			}
			return Queue, name, nil
		},
	}
}

// IBMMQ is an AMQP channel of IBM MQ: one session, no transactions, no outcome of a receiver but accepted, topics
// unless a capability asks for a queue, and no messages with annotations or without the property to.
func IBMMQ() Vendor {
	return Vendor{
		Name: "IBM MQ", Mechanisms: []string{"PLAIN", "ANONYMOUS"},
		Open: wire.Open{ChannelMax: wire.Some[uint16](65_535)},
		Properties: []string{
			"product", "IBM MQ AMQP Support", "version", "p930-L220606", "platform", "Linux", "host", "qm1",
		},
		OneSession: true, AcceptsOnly: true, NoTransactions: true, NeedsTo: true,
		Node: func(t *wire.Terminus) (kind, name string, refused *wire.Error) {
			if slices.Contains(t.Capabilities, "topic") || !slices.Contains(t.Capabilities, "queue") {
				return Topic, t.Address.V, nil
			}
			return Queue, t.Address.V, nil
		},
	}
}

// Solace is an event broker of Solace: it names itself by a platform, and gives prefixes for queues and topics.
func Solace() Vendor {
	return Vendor{
		Name: "Solace", Mechanisms: []string{"PLAIN", "ANONYMOUS"},
		Open: wire.Open{
			MaxFrameSize: wire.Some[uint32](68_157_440), ChannelMax: wire.Some[uint16](255),
			OfferedCapabilities: []string{"ANONYMOUS-RELAY", "sole-connection-for-container", "SHARED-SUBS"},
		},
		Properties: []string{
			"topic-prefix", "topic://", "queue-prefix", "queue://",
			"platform", "Solace PubSub+ 3560", "version", "10.4.1.189",
		},
		NoTransactions: true,
		Node:           prefixed(func(name string) string { return Topic + "://" + name }),
	}
}

// AmazonMQ is the ActiveMQ engine of Amazon MQ. Its standby is another address of the same broker, see
// [Fault.FailOver].
func AmazonMQ() Vendor {
	return Vendor{
		Name: "Amazon MQ", Mechanisms: []string{"PLAIN"},
		Open: wire.Open{
			ChannelMax: wire.Some[uint16](32_767), IdleTimeout: 30_000,
			OfferedCapabilities: []string{"ANONYMOUS-RELAY", "DELAYED_DELIVERY"},
		},
		Properties: []string{
			"queue-prefix", "queue://", "topic-prefix", "topic://", "product", "ActiveMQ", "version", "5.18.6",
		},
		Node: prefixed(func(name string) string { return Queue + "://" + name }),
	}
}

// prefixed reads an address with the prefix of its kind; meant says what one without a prefix means.
func prefixed(meant func(string) string) func(*wire.Terminus) (string, string, *wire.Error) {
	return func(t *wire.Terminus) (kind, name string, refused *wire.Error) {
		kind, name, ok := strings.Cut(t.Address.V, "://")
		if !ok {
			kind, name, _ = strings.Cut(meant(t.Address.V), "://")
		}
		return kind, name, nil
	}
}

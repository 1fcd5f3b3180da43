package amqp

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// dialect is a broker's convention for everything that AMQP 1.0 leaves open: the addresses of queues and topics, and
// the settings that the protocol can carry but the broker ignores. The driver refuses these instead of sending them.
type dialect string

// The dialects. plain is for unknown brokers: the name unchanged, with its kind as a capability of the terminus.
const (
	artemis   dialect = protocol.Artemis
	activemq  dialect = protocol.ActiveMQ
	rabbitmq  dialect = protocol.RabbitMQ
	rabbitmq3 dialect = protocol.RabbitMQ3 // with the plug-in rabbitmq_amqp1_0
	brokerj   dialect = protocol.BrokerJ
	ibmmq     dialect = protocol.IBMMQ
	plain     dialect = ""
)

// refuse returns an error if a setting was given, else nil.
func (d dialect) refuse(given bool, hint, what string) error {
	return protocol.Refuse(given, string(d), "AMQP", hint, what)
}

// address returns the address of a terminus. On RabbitMQ a name with a leading slash is an address already.
func (d dialect) address(dest driver.Destination) string {
	topic := dest.Kind == driver.Topic
	switch {
	case d == activemq:
		return dest.String() // the capability alone does not make a source a topic
	case d == brokerj && topic:
		return "amq.topic/" + dest.Name // the name alone would mean a queue
	case d != rabbitmq && d != rabbitmq3, strings.HasPrefix(dest.Name, "/"):
		return dest.Name
	case d == rabbitmq && topic:
		return "/exchanges/amq.topic/" + url.PathEscape(dest.Name)
	case d == rabbitmq:
		return queuesPath + url.PathEscape(dest.Name)
	default: // the plug-in decodes no other escape, and a slash would end the name
		return "/" + dest.Kind.String() + "/" + strings.ReplaceAll(dest.Name, "/", "%2F")
	}
}

// address returns the address of a terminus. Brokers without a dialect here may give a prefix for each kind in their
// open frame, as Solace does, and as Qpid JMS reads it.
func (c *connection) address(dest driver.Destination) string {
	if c.stream(dest, &c.driver.cfg.Options) {
		dest.Kind = driver.Queue
	}
	address, prefix := c.dialect.address(dest), c.prefixes[dest.Kind]
	if strings.HasPrefix(address, prefix) {
		return address
	}
	return prefix + address
}

// to returns the property to of messages to a destination, or nil: IBM MQ rejects messages without it.
func (c *connection) to(dest driver.Destination) []byte {
	if c.dialect != ibmmq {
		return nil
	}
	return []byte(c.address(dest))
}

// queuesPath begins RabbitMQ 4's address of a queue.
const queuesPath = "/queues/"

// stream reports whether a topic is a stream, which RabbitMQ keeps as a queue: by its address, or as declared.
func (d dialect) stream(dest driver.Destination, o *Options) bool {
	return d == rabbitmq && dest.Kind == driver.Topic &&
		(o.Declare == declareStream || strings.HasPrefix(dest.Name, queuesPath))
}

// durability returns the durability of the terminus. The plug-in of RabbitMQ declares the queue as durable or not by
// it, for senders and receivers alike; every other protocol of RabbitMQ declares durable ones.
func (d dialect) durability() uint32 {
	if d == rabbitmq3 {
		return wire.DurableConfiguration
	}
	return wire.DurableNone
}

// checkDestination refuses to declare destinations that cannot, or need not, be declared, and names that the broker
// would not take for exactly one destination of that name. Only consumers may use a name that means many destinations.
func (d dialect) checkDestination(dest driver.Destination, o *Options, producer bool) error {
	misread := protocol.Misread(string(d), dest, producer)
	return cmp.Or(
		d.refuse(o.Declare == declareStream && dest.Kind == driver.Queue, "use topic://"+dest.Name, protocol.IsStream),
		d.refuse(o.Declare != declareNo && !d.managed(dest, o), "leave out -o declare",
			"only queues and streams of RabbitMQ 4 are declared, by their names"),
		d.refuse(misread != "", protocol.HintName, misread),
	)
}

// checkProducer refuses settings that the broker would ignore.
func (d dialect) checkProducer(spec *driver.ProducerSpec, o *Options) error {
	if err := d.checkDestination(spec.Destination, o, true); err != nil {
		return err
	}
	stream := d.stream(spec.Destination, o)
	ungrouped := d == rabbitmq || d == rabbitmq3 || d == brokerj && spec.Destination.Kind == driver.Topic
	return cmp.Or(
		d.refuse(d == ibmmq && spec.CommitInterval > 0, "leave out --commit-interval", noTransactions),
		d.refuse(ungrouped && slices.ContainsFunc(spec.Variants, func(v driver.Variant) bool { return v.Group != "" }),
			"leave out --group", protocol.NoGroups),
		d.refuse(d == rabbitmq3 && hasPriority(spec) && !strings.HasPrefix(spec.Destination.Name, "/"),
			protocol.HintPriority, protocol.NoPriorities),
		protocol.CheckStreamed(string(d), "AMQP", stream, spec),
	)
}

func hasPriority(spec *driver.ProducerSpec) bool {
	return slices.ContainsFunc(spec.Variants, func(v driver.Variant) bool { return v.Priority >= 0 })
}

// checkConsumer refuses settings that the broker would ignore, and consumers with queues that the broker would not
// remove.
func (d dialect) checkConsumer(spec *driver.ConsumerSpec, o *Options) error {
	stream := d.stream(spec.Destination, o)
	return cmp.Or(
		d.checkDestination(spec.Destination, o, false),
		protocol.CheckStream(string(d), "AMQP", stream, spec),
		d.refuse(spec.Destination.Kind == driver.Queue && (spec.Durable || spec.Shared),
			"use topic://"+spec.Destination.Name, protocol.OnlyTopics),
		d.refuse(d == ibmmq && spec.TransactionSize > 0, "leave out --tx", noTransactions),
		d.refuse(d == ibmmq && spec.Failing != driver.Accept, "leave out --consumer-fail",
			"consumers can only accept messages"),
		d.refuse(d == activemq && spec.Shared, protocol.HintVirtual, protocol.Unshared),
		d.refuse(d == brokerj && spec.Failing == driver.Reject, "use the verdict release",
			"rejected messages return unless the queue limits attempts"),
		d.refuse((d == rabbitmq || d == rabbitmq3) && spec.Destination.Kind == driver.Topic && !stream,
			"use STOMP, a stream, or a queue bound to amq.topic", "only queues and streams can be consumed from"),
		// Up to 4.0 it confirms any filter, and sends all messages. Other brokers are trusted to confirm only filters
		// in effect (AMQP 1.0, Messaging, section 3.5.3).
		d.refuse((d == rabbitmq || d == rabbitmq3) && spec.Selector != "", "leave out --selector",
			protocol.NoSelectors),
	)
}

const noTransactions = "there are no transactions"

// releases reports whether consumers may release messages. IBM MQ takes no outcome but accepted: there messages return
// when their link ends.
func (d dialect) releases() bool { return d != ibmmq }

// detaches reports whether links are detached before their session ends. RabbitMQ before 4 answers a closing detach
// with a non-closing one, and the library waits without end; there the end of the session is enough.
func (d dialect) detaches() bool { return d != rabbitmq3 }

// redelivered reports whether the broker marked the message as delivered before. RabbitMQ does not count the deliveries
// of classic queues but reports a redelivery in first-acquirer. With other brokers first-acquirer reports whether
// another consumer acquired the message, which is not the same as its delivery (AMQP 1.0, Messaging, section 3.2.1).
func (d dialect) redelivered(h *wire.Header) bool {
	return h.DeliveryCount > 0 || (d == rabbitmq || d == rabbitmq3) && !h.FirstAcquirer
}

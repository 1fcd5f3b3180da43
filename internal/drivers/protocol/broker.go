package protocol

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Brokers with conventions of their own: values of -o dialect.
const (
	Artemis   = "artemis"
	ActiveMQ  = "activemq" // ActiveMQ Classic
	RabbitMQ  = "rabbitmq" // RabbitMQ 4 and later over AMQP, any over STOMP
	RabbitMQ3 = "rabbitmq3"
	BrokerJ   = "brokerj" // Qpid Broker-J
	IBMMQ     = "ibmmq"   // an AMQP channel of IBM MQ
	Perfmq    = "perfmq"  // our embedded broker
)

// Broker returns the broker with that product and version; "" for an unknown one.
func Broker(product, version string) string {
	switch name := strings.ToLower(product); {
	case strings.Contains(name, "artemis"):
		return Artemis
	case name == "activemq":
		return ActiveMQ
	case strings.Contains(name, "broker-j"):
		return BrokerJ
	case strings.HasPrefix(name, "ibm mq"): // "IBM MQ AMQP Support"
		return IBMMQ
	case name == "perfmq embedded broker":
		return Perfmq
	case name == "rabbitmq" && Before(version, 4, 0):
		return RabbitMQ3
	case name == "rabbitmq":
		return RabbitMQ
	}
	return ""
}

// STOMPBroker returns the broker of the server header of a CONNECTED frame. All versions of RabbitMQ are alike.
func STOMPBroker(server string) string {
	name, _ := STOMPServer(server)
	return Broker(name, "")
}

// Before reports whether a version such as 2.33.1 is before major.minor; false for an unknown one.
func Before(version string, major, minor int) bool {
	parts := strings.SplitN(version+".0.", ".", 3)
	first, err := strconv.Atoi(parts[0])
	second, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (first < major || first == major && second < minor)
}

// Refuse returns the error about a setting that a broker would ignore over a protocol, if it was given.
func Refuse(given bool, broker, over, hint, what string) error {
	if !given {
		return nil
	}
	return driver.Errorf(driver.ClassUnsupported, "", hint, "%s over %s: %s", Title(broker), over, what)
}

// IsStream is why a stream is no queue to perfmq.
const IsStream = "each consumer of a stream gets all messages"

// CheckStreamed refuses settings of a producer that a stream would ignore, and those of streams elsewhere.
func CheckStreamed(broker, over string, stream bool, spec *driver.ProducerSpec) error {
	some := func(has func(v driver.Variant) bool) bool { return slices.ContainsFunc(spec.Variants, has) }
	return cmp.Or(
		Refuse(!stream && some(func(v driver.Variant) bool { return v.FilterValue != "" }), broker, over, hintStream,
			"only messages of streams have filter values"),
		Refuse(stream && spec.TTL > 0, broker, over, "leave out --ttl",
			"messages of a stream do not expire one by one"),
		Refuse(stream && some(func(v driver.Variant) bool { return v.Priority >= 0 }), broker, over,
			"leave out --priority", "a stream has no priorities"),
	)
}

// CheckStream refuses settings of a consumer that a stream would ignore, and those of streams elsewhere.
func CheckStream(broker, over string, stream bool, spec *driver.ConsumerSpec) error {
	return cmp.Or(
		Refuse(!stream && spec.Streams(), broker, over, hintStream, "only streams have offsets and filter values"),
		Refuse(stream && (spec.Durable || spec.Shared), broker, over, "use --stream-offset",
			"a stream keeps its messages itself, and no subscriptions"),
		Refuse(stream && spec.Failing != driver.Accept, broker, over, "leave out --consumer-fail",
			"a stream keeps a message whatever its consumer says"),
	)
}

const hintStream = "RabbitMQ has streams: topic://NAME with -o declare=stream"

// Title returns a broker's name for messages.
func Title(broker string) string {
	if title := map[string]string{
		Artemis: "Artemis", ActiveMQ: "ActiveMQ Classic", RabbitMQ: "RabbitMQ", RabbitMQ3: "RabbitMQ before 4",
		BrokerJ: "Qpid Broker-J", IBMMQ: "IBM MQ", Perfmq: "the embedded broker",
	}[broker]; title != "" {
		return title
	}
	return "the broker"
}

// Routing returns Artemis's name of the kind of destination.
func Routing(kind driver.Kind) string {
	if kind == driver.Topic {
		return "MULTICAST"
	}
	return "ANYCAST"
}

// Missing is the hint for a destination that does not exist.
func Missing(broker string) string {
	switch broker {
	case Artemis:
		return "create it, set auto-create-addresses and -queues on the broker, or try queue:// or topic://"
	case RabbitMQ, RabbitMQ3:
		return "declare it on the broker first"
	}
	return "create it, or let the broker create it"
}

// Hints and reasons of drivers for refusals.
const (
	HintName     = "choose another name" // [Misread] refuses it
	HintBytes    = "leave out --message-type text"
	HintNoDelay  = "leave out --delivery-delay"
	HintSelector = "check the syntax of --selector"
	HintSmaller  = "send smaller messages or raise the broker's limit"
	HintVirtual  = "consume from a virtual topic: queue://Consumer.NAME.VirtualTopic.TOPIC"

	OnlyTopics  = "only topics have durable and shared subscriptions"
	Unshared    = "subscriptions cannot be shared"
	NoGroups    = "there are no message groups"
	NoSelectors = "there are no selectors"

	HintPriority = "declare it with x-max-priority and name it /amq/queue/NAME" // RabbitMQ
	NoPriorities = "a queue has no priorities unless it is declared with them"

	HintReplica    = "the broker has the message: is its disk slow, or its slave away?" // RocketMQ
	HintNameServer = "give the address of a name server; its port is 9876 by default"
)

// AMQPTextNotUTF8 is the error about a message of text that cannot be sent.
func AMQPTextNotUTF8(op string) error {
	return driver.Errorf(driver.ClassUnsupported, op, HintBytes, "texts are UTF-8 over AMQP, and the body is not")
}

// IgnoredSelector is the error about a selector that a broker over AMQP does not confirm.
func IgnoredSelector(op string) error {
	return driver.Errorf(driver.ClassUnsupported, op, "leave out --selector",
		"the broker ignores the selector")
}

// LeftBehind is the error about a subscription that may still exist, for the reason err.
func LeftBehind(op string, err error) error {
	return driver.Errorf(driver.ClassOf(err), op, "remove it on the broker",
		"the subscription may have stayed behind: %w", err)
}

// Misread returns the broker's reading of a name, if it is other than exactly one destination of that name, or "". Only
// consumers may use a name that stands for many destinations.
func Misread(broker string, dest driver.Destination, producer bool) string {
	name, topic := dest.Name, dest.Kind == driver.Topic
	patterns := map[string]string{Artemis: "*#", ActiveMQ: "*>,"}[broker]
	if topic && (broker == RabbitMQ || broker == RabbitMQ3 || broker == BrokerJ) {
		patterns = "*#"
	}
	notASCII := func(r rune) bool { return r >= utf8.RuneSelf }
	switch {
	case (broker == Artemis || broker == ActiveMQ) && strings.Contains(name, "?"): // Artemis accepts, and delivers nothing
		return "the text after a ? in a name is taken for parameters"
	case broker == ActiveMQ && name != strings.TrimSpace(name):
		return "blanks around a name are left out"
	case broker == RabbitMQ3 && !strings.HasPrefix(name, "/") &&
		(strings.Contains(name, "%2F") || strings.ContainsFunc(name, notASCII)):
		return "a name may have neither %2F nor characters beyond ASCII"
	case broker == BrokerJ && !topic && strings.Contains(name, "/"):
		return "a slash separates an exchange from a key"
	case producer && strings.ContainsAny(name, patterns):
		return "the name stands for many destinations"
	}
	return ""
}

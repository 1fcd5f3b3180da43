package stomp

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
)

// dialect is a broker's convention for the parts that STOMP leaves open: names of destinations, durable subscriptions,
// expiry, flow control. A setting without a header in the dialect is refused, never silently ignored.
type dialect string

// The dialects.
const (
	artemis  dialect = protocol.Artemis
	activemq dialect = protocol.ActiveMQ
	rabbitmq dialect = protocol.RabbitMQ
	perfmq   dialect = protocol.Perfmq
	generic  dialect = "" // the headers that all brokers understand
)

// refuse returns an error if a setting was given, else nil.
func (d dialect) refuse(given bool, hint, what string) error {
	return protocol.Refuse(given, string(d), "STOMP", hint, what)
}

// reservedHeaders returns the headers with a meaning in a SEND frame.
func reservedHeaders() []string {
	return []string{
		"destination", "transaction", "receipt", "content-length", timeHeader, driver.IDProperty, "persistent", "priority",
		"expires", "expiration", "AMQ_SCHEDULED_DELAY", "destination-type", "x-queue-type", "x-max-priority",
		"x-stream-filter-value",
		"JMSXGroupID", "subscription", "message-id", "ack", "redelivered",
	}
}

// address returns the destination header. Where slashes have a meaning, names with a leading slash are used unchanged.
func (d dialect) address(dest driver.Destination) string {
	switch {
	case d == perfmq:
		return dest.String()
	case d == artemis, strings.HasPrefix(dest.Name, "/"):
		return dest.Name
	}
	name := dest.Name
	if d == rabbitmq {
		name = strings.ReplaceAll(name, "/", "%2F") // a slash would end the queue's name; the broker decodes no other escape
	}
	return "/" + dest.Kind.String() + "/" + name
}

// stream reports whether a topic is a stream, which RabbitMQ keeps as a queue: by its address, or as declared.
func (d dialect) stream(dest driver.Destination, o *Options) bool {
	return d == rabbitmq && dest.Kind == driver.Topic &&
		(o.Declare == kindStream || strings.HasPrefix(dest.Name, "/amq/queue/"))
}

// addressOf is address for destinations that may be streams.
func (d dialect) addressOf(dest driver.Destination, o *Options) string {
	if d.stream(dest, o) {
		dest.Kind = driver.Queue
	}
	return d.address(dest)
}

// replyQueue begins RabbitMQ's address of a queue that exists: SEND to /queue would declare it, perhaps as another one.
const replyQueue = "/reply-queue/"

// repliesTo returns the headers of a subscription to a queue of that name for replies, which ends with it, and the
// address that requests on the same connection carry.
func (d dialect) repliesTo(name string) (headers []string, address string, err error) {
	address = "/temp-queue/" + name // which the broker replaces by one that others can use
	headers = []string{"destination", address}
	switch d {
	case artemis: // has no temporary queues over STOMP
		headers[1], address = name, name
	case rabbitmq: // subscribes to temporary queues by itself, without a limit of messages
		headers = []string{
			"destination", "/queue/" + name, "durable", "false", "auto-delete", "true", "exclusive", "true",
		}
		address = replyQueue + name
	}
	return headers, address, d.refuse(d == generic, "give --reply-to queue://NAME",
		"no temporary queue is known for replies")
}

// expiresAbsolutely reports whether each message carries the time of its expiry instead of the time to live.
func (d dialect) expiresAbsolutely() bool { return d == artemis || d == activemq || d == perfmq }

// send returns the headers common to all messages of a producer.
func (d dialect) send(spec *driver.ProducerSpec, o *Options) ([]driver.Property, error) {
	var misplaced error
	if !spec.Anonymous {
		misplaced = d.checkDestination(spec.Destination, o, true)
	}
	err := cmp.Or(
		misplaced,
		protocol.CheckStreamed(string(d), "STOMP", d.stream(spec.Destination, o), spec),
		d.refuse(spec.TTL > 0 && d == generic, "leave out --ttl", "no header is known for the time to live"),
		d.refuse(spec.Delay > 0 && (d == rabbitmq || d == generic), protocol.HintNoDelay,
			"no header is known for a delayed delivery"),
	)
	if err != nil {
		return nil, err
	}
	var headers []driver.Property
	add := func(key, value string) { headers = append(headers, driver.Property{Key: key, Value: value}) }
	if !spec.Anonymous {
		add("destination", d.addressOf(spec.Destination, o))
		if d == artemis {
			add("destination-type", protocol.Routing(spec.Destination.Kind))
		}
		if o.Declare != declareNo {
			add(headerType, o.Declare)
		}
	}
	if d != rabbitmq || spec.Persistent { // RabbitMQ ignores any value except true
		add("persistent", strconv.FormatBool(spec.Persistent))
	}
	if spec.TTL > 0 && d == rabbitmq {
		add("expiration", strconv.FormatInt(max(1, spec.TTL.Milliseconds()), 10))
	}
	if spec.Delay > 0 {
		add("AMQ_SCHEDULED_DELAY", strconv.FormatInt(spec.Delay.Milliseconds(), 10))
	}
	return headers, nil
}

// sendVariant returns the additional headers common to all messages of a variant.
func (d dialect) sendVariant(
	spec *driver.ProducerSpec, v *driver.Variant, o *Options,
) (headers []driver.Property, err error) {
	unranked := d == rabbitmq && !strings.HasPrefix(spec.Destination.Name, "/") && o.Declare != kindQuorum
	err = cmp.Or(
		d.refuse(v.Text && d == rabbitmq, protocol.HintBytes, "messages have no type"),
		d.refuse(v.Priority >= 0 && d == generic, "leave out --priority", "no header is known for the priority"),
		d.refuse(v.Priority >= 0 && unranked, protocol.HintPriority, protocol.NoPriorities),
		d.refuse(v.Group != "" && (d == rabbitmq || d == generic), "leave out --group", protocol.NoGroups),
	)
	if err != nil {
		return nil, err
	}
	add := func(given bool, key, value string) {
		if given {
			headers = append(headers, driver.Property{Key: key, Value: value})
		}
	}
	add(v.Priority >= 0, "priority", strconv.Itoa(min(v.Priority, 9)))
	add(v.Group != "", "JMSXGroupID", v.Group)
	add(v.FilterValue != "", "x-stream-filter-value", v.FilterValue)
	return headers, nil
}

// headerType is the header of SEND and SUBSCRIBE with the type of a queue to declare (RabbitMQ's STOMP plug-in, "Queue
// properties"). Each message carries it.
const headerType = "x-queue-type"

// checkDestination refuses a name that the broker would not take for one destination of that name, and queues that
// cannot be declared. Only consumers may use a name that means many destinations.
func (d dialect) checkDestination(dest driver.Destination, o *Options, producer bool) error {
	declared := d == rabbitmq && dest.Kind == driver.Queue && !strings.HasPrefix(dest.Name, "/") || d.stream(dest, o)
	broker := string(d)
	if d == rabbitmq {
		broker = protocol.RabbitMQ3 // also later ones read names so
	}
	misread := protocol.Misread(broker, dest, producer)
	return cmp.Or(
		d.refuse(o.Declare == kindStream && dest.Kind == driver.Queue, "use topic://"+dest.Name, protocol.IsStream),
		d.refuse(o.Declare != declareNo && !declared, "leave out -o declare",
			"only queues and streams of RabbitMQ are declared, by their names"),
		d.refuse(misread != "", protocol.HintName, misread),
	)
}

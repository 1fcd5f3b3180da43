package stomp

import (
	"strconv"
	"strings"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// dialect is how a broker wants what STOMP leaves to it: names of destinations, subscriptions that last, expiry, flow
// control. Each setting that a dialect has no header for is refused, never left out in silence.
type dialect string

// The dialects there are.
const (
	artemis  dialect = "artemis"
	activemq dialect = "activemq" // ActiveMQ Classic
	rabbitmq dialect = "rabbitmq"
	perfmq   dialect = "perfmq"  // our embedded broker
	generic  dialect = "generic" // what all brokers understand
)

// dialectOf goes by the server header of CONNECTED.
func dialectOf(server string) dialect {
	name := strings.ToLower(server)
	switch {
	case strings.Contains(name, "artemis"):
		return artemis
	case strings.HasPrefix(name, "activemq/"), name == "activemq":
		return activemq
	case strings.HasPrefix(name, "rabbitmq"):
		return rabbitmq
	case strings.HasPrefix(name, "perfmq embedded broker/"):
		return perfmq
	default:
		return generic
	}
}

// title is the broker's name in messages.
func (d dialect) title() string {
	switch d {
	case artemis:
		return "Artemis"
	case activemq:
		return "ActiveMQ Classic"
	case rabbitmq:
		return "RabbitMQ"
	case perfmq:
		return "the embedded broker"
	default:
		return "this broker"
	}
}

func (d dialect) unsupported(hint, what string) error {
	if d == generic {
		hint = "if it is Artemis, ActiveMQ or RabbitMQ say so by -o dialect="
	}
	return driver.Errorf(driver.ClassUnsupported, "", hint, "%s over STOMP: %s", d.title(), what)
}

// reservedHeaders are those that have a meaning in a SEND frame.
func reservedHeaders() []string {
	return []string{
		"destination", "transaction", "receipt", "content-length", timeHeader, driver.IDProperty, "persistent", "priority",
		"expires",
		"expiration", "AMQ_SCHEDULED_DELAY", "destination-type", "x-queue-type", "x-max-priority", "JMSXGroupID",
		"subscription", "message-id", "ack", "redelivered",
	}
}

// address returns the destination header. Names with a leading slash are taken as they are, where slashes have a
// meaning.
func (d dialect) address(dest driver.Destination) string {
	switch {
	case d == perfmq:
		return dest.String()
	case d == artemis, strings.HasPrefix(dest.Name, "/"):
		return dest.Name
	}
	name := dest.Name
	if d == rabbitmq {
		name = strings.ReplaceAll(name, "/", "%2F") // a slash would end the queue's name; no other escape is understood
	}
	return "/" + dest.Kind.String() + "/" + name
}

// routing is Artemis's name of the kind of destination.
func routing(kind driver.Kind) string {
	if kind == driver.Topic {
		return "MULTICAST"
	}
	return "ANYCAST"
}

// expiresAbsolutely reports whether the time to live is sent with each message as the moment when it ends.
func (d dialect) expiresAbsolutely() bool { return d == artemis || d == activemq || d == perfmq }

// send returns the headers that are the same for all messages of a producer.
func (d dialect) send(spec *driver.ProducerSpec, o *Options) ([]driver.Property, error) {
	if err := d.checkName(spec.Destination, true); err != nil {
		return nil, err
	}
	headers := []driver.Property{{Key: "destination", Value: d.address(spec.Destination)}}
	add := func(key, value string) { headers = append(headers, driver.Property{Key: key, Value: value}) }
	if d == artemis {
		add("destination-type", routing(spec.Destination.Kind))
	}
	declared, err := d.declared(spec.Destination, o)
	if err != nil {
		return nil, err
	}
	if declared {
		headers = append(headers, o.declaration()...)
	}
	switch {
	case d == rabbitmq && !spec.Persistent: // any value but true is ignored
	default:
		add("persistent", strconv.FormatBool(spec.Persistent))
	}
	if spec.TTL > 0 {
		switch {
		case d == rabbitmq && o.Declare == kindStream:
			return nil, d.unsupported("leave out --ttl", "messages of a stream do not expire one by one")
		case d == rabbitmq:
			add("expiration", strconv.FormatInt(max(1, spec.TTL.Milliseconds()), 10))
		case d == generic:
			return nil, d.unsupported("", "no header is known for the time to live")
		}
	}
	if spec.Delay > 0 {
		if d == rabbitmq || d == generic {
			return nil, d.unsupported("leave out --delivery-delay", "no header is known for a delayed delivery")
		}
		add("AMQ_SCHEDULED_DELAY", strconv.FormatInt(spec.Delay.Milliseconds(), 10))
	}
	return headers, nil
}

// sendVariant returns the headers, beside them, that are the same for all messages of a variant. The server is the
// header of CONNECTED.
func (d dialect) sendVariant(
	spec *driver.ProducerSpec, v *driver.Variant, o *Options, server string,
) (headers []driver.Property, err error) {
	if v.Text && d == rabbitmq {
		return nil, d.unsupported("leave out --message-type text", "messages have no type")
	}
	if v.Priority >= 0 {
		if d == generic {
			return nil, d.unsupported("", "no header is known for the priority")
		}
		if err := d.checkPriority(spec.Destination, o, server); err != nil {
			return nil, err
		}
		headers = append(headers, driver.Property{Key: "priority", Value: strconv.Itoa(min(v.Priority, 9))})
	}
	if v.Group != "" {
		if d == rabbitmq || d == generic {
			return nil, d.unsupported("leave out --group", "there are no message groups")
		}
		headers = append(headers, driver.Property{Key: "JMSXGroupID", Value: v.Group})
	}
	return headers, nil
}

// subscription is how a consumer subscribes and ends its subscription.
type subscription struct {
	subscribe []string // headers of SUBSCRIBE
	ack       string   // mode of acknowledgement
	// end are the headers of the UNSUBSCRIBE frames that end receiving, in order.
	end []string
	// remove are those that remove a durable subscription afterwards; nil if there is nothing to remove.
	remove []string
	// removeAs is the client identity that remove needs when it is not the connection's own.
	removeAs string
	// last is not empty when only the last one of several consumers may remove it: the name of what they share.
	last string
	// returns is set when the broker has to be told by NACK which messages were not delivered.
	returns bool
}

// ackMode is the mode of acknowledgement to subscribe with. A cumulative ACK of RabbitMQ 3.10 covers, against STOMP,
// all subscriptions of the connection, so that the next ACK of another one ends the connection: it is not used unless
// asked for.
func (d dialect) ackMode(option string, spec *driver.ConsumerSpec) string {
	switch {
	case spec.TransactionSize > 0,
		option == ackBest && (d == rabbitmq || spec.Concurrency > 1 || spec.Failing != driver.Accept):
		return ackIndividual
	case option == ackBest:
		return ackClient
	default:
		return option
	}
}

// subscription returns how to subscribe. ID is the number of the subscription, identity the connection's client-id.
func (d dialect) subscription(spec *driver.ConsumerSpec, o *Options, id, identity string) (*subscription, error) {
	if err := d.checkName(spec.Destination, false); err != nil {
		return nil, err
	}
	if spec.Destination.Kind == driver.Queue && (spec.Durable || spec.Shared) {
		return nil, d.unsupported("use topic://"+spec.Destination.Name, "only topics have durable and shared subscriptions")
	}
	if spec.TransactionSize > 0 && (d == artemis || d == generic) {
		return nil, d.unsupported("leave out --tx", "messages cannot be received in transactions")
	}
	if o.Ack == ackAuto && (spec.Credit > 0 || spec.TransactionSize > 0) {
		return nil, d.unsupported("leave out -o ack=auto, or --credit and --tx",
			"with ack=auto no message is acknowledged, so neither credit nor a transaction applies")
	}
	if o.Ack == ackClient && spec.Concurrency > 1 && spec.TransactionSize == 0 {
		return nil, d.unsupported("use -o ack=client-individual",
			"with ack=client an acknowledgement takes messages that are still being delivered")
	}
	declared, err := d.declared(spec.Destination, o)
	if err != nil {
		return nil, err
	}
	if declared && o.Declare == kindStream && o.Ack == ackAuto {
		return nil, d.unsupported("leave out -o ack=auto", "streams want acknowledgements")
	}
	ack := d.ackMode(o.Ack, spec)
	s := &subscription{
		ack:       ack,
		subscribe: []string{"id", id, "destination", d.address(spec.Destination), "ack", ack},
		end:       []string{"id", id},
		returns:   d == rabbitmq && ack != ackAuto,
	}
	if declared {
		for _, h := range o.declaration() {
			s.add(h.Key, h.Value)
		}
		if o.Declare == kindStream {
			s.add("x-stream-offset", o.From)
		}
	}
	if spec.Selector != "" {
		if d == rabbitmq {
			return nil, d.unsupported("leave out --selector", "there are no selectors")
		}
		s.add("selector", spec.Selector)
	}
	if ack == ackAuto {
		d.flow(s, spec.Credit, -1) // Artemis gives room for more only when something is acknowledged
	} else {
		d.flow(s, spec.Credit, o.Window)
	}
	switch d {
	case artemis:
		return s, d.artemisSubscription(s, spec, identity)
	case activemq:
		return s, d.activemqSubscription(s, spec)
	case rabbitmq:
		return s, d.rabbitmqSubscription(s, spec, id)
	case perfmq:
		s.perfmqSubscription(spec)
		return s, nil
	default:
		if spec.Durable || spec.Shared {
			return nil, d.unsupported("", "no header is known for durable and shared subscriptions")
		}
		return s, nil
	}
}

func (s *subscription) add(headers ...string) { s.subscribe = append(s.subscribe, headers...) }

const (
	// smallestFrame is less than any MESSAGE frame of Artemis: with the headers that it always sends, one has more.
	smallestFrame = 256
	// defaultWindow is what Artemis may send ahead, in bytes, when the user does not say.
	defaultWindow = 1 << 20
)

// flow limits what the broker may send ahead. Artemis counts bytes: it goes on sending while less than the window is
// unacknowledged, so the limit never lets more than credit messages through, and fewer when they are large.
func (d dialect) flow(s *subscription, credit, window int) {
	switch d {
	case artemis:
		switch {
		case window == 0 && credit > 0:
			window = (min(credit, 1<<20)-1)*smallestFrame + 1
		case window == 0:
			window = defaultWindow
		}
		s.add("consumer-window-size", strconv.Itoa(window))
	case activemq:
		s.add("activemq.prefetchSize", strconv.Itoa(creditOr(credit)))
	case rabbitmq:
		s.add("prefetch-count", strconv.Itoa(min(creditOr(credit), 1<<16-1)))
	case perfmq:
		s.add("prefetch-count", strconv.Itoa(creditOr(credit)))
	}
}

func creditOr(credit int) int {
	if credit > 0 {
		return credit
	}
	return defaultCredit
}

// sharedOwner is the client identity under which shared subscriptions without one are kept.
const sharedOwner = "perfmq-shared"

func (d dialect) artemisSubscription(s *subscription, spec *driver.ConsumerSpec, identity string) error {
	s.add("subscription-type", routing(spec.Destination.Kind))
	switch {
	case spec.Shared:
		// A queue of the topic that all share, under the name that Artemis removes by a durable subscription's name.
		owner := spec.Connection.ClientID
		if owner == "" {
			owner = sharedOwner
		}
		s.subscribe[3] = spec.Destination.Name + "::" + owner + "." + spec.Subscription
		if !spec.Durable || !spec.KeepSubscription {
			s.remove = []string{"id", "none", "durable-subscription-name", spec.Subscription}
			s.last = s.subscribe[3]
			if owner != identity {
				s.removeAs = owner
			}
		}
	case spec.Durable:
		s.add("durable-subscription-name", spec.Subscription)
		if !spec.KeepSubscription {
			s.remove = []string{"id", "none", "durable-subscription-name", spec.Subscription}
		}
	}
	return nil
}

// checkVersion refuses what goes wrong with an old version of the protocol: with 1.0 ActiveMQ Classic takes the name of
// the subscription that is to be removed for the client ID as well.
func (d dialect) checkVersion(v wire.Version, spec *driver.ConsumerSpec, identity string) error {
	if d == activemq && v == wire.V10 && spec.Durable && !spec.KeepSubscription && identity != spec.Subscription {
		return d.unsupported("leave out -o version=1.0, or give the client ID as the name of the subscription",
			"a durable subscription cannot be removed by STOMP 1.0 if it is not named as the client")
	}
	return nil
}

func (d dialect) activemqSubscription(s *subscription, spec *driver.ConsumerSpec) error {
	switch {
	case spec.Shared:
		return d.unsupported("consume from a virtual topic: queue://Consumer.NAME.VirtualTopic.TOPIC",
			"subscriptions cannot be shared")
	case spec.Durable:
		s.add("activemq.subscriptionName", spec.Subscription)
		if !spec.KeepSubscription {
			s.remove = []string{"id", s.end[1], "activemq.subscriptionName", spec.Subscription}
		}
	}
	return nil
}

func (d dialect) rabbitmqSubscription(s *subscription, spec *driver.ConsumerSpec, id string) error {
	if spec.Destination.Kind != driver.Topic || !spec.Durable && !spec.Shared {
		return nil
	}
	queue := "perfmq-" + spec.Subscription
	if spec.Connection.ClientID != "" {
		queue = "perfmq-" + spec.Connection.ClientID + "-" + spec.Subscription
	}
	s.add("x-queue-name", queue)
	if !spec.Durable {
		s.add("durable", "false", "auto-delete", "true", "exclusive", "false")
		return nil
	}
	s.add("durable", "true", "auto-delete", "false", "exclusive", "false")
	if !spec.KeepSubscription {
		// RabbitMQ ends receiving and removes the queue in one, whoever else uses it.
		s.remove = append([]string{"id", id, "destination", s.subscribe[3]}, s.subscribe[len(s.subscribe)-8:]...)
		s.last = queue
	}
	return nil
}

func (s *subscription) perfmqSubscription(spec *driver.ConsumerSpec) {
	if spec.Destination.Kind != driver.Topic {
		return
	}
	header, name := "durable-subscription-name", spec.Subscription
	switch {
	case spec.Shared:
		header = "shared-subscription-name" // not the connection's: the client identity, if any, has to be in it
		if owner := spec.Connection.ClientID; owner != "" {
			name = owner + "." + name
		}
		s.add(header, name, "durable", strconv.FormatBool(spec.Durable))
	case spec.Durable:
		s.add(header, name)
	}
	if spec.Durable && !spec.KeepSubscription {
		s.remove = []string{"id", "none", header, name}
		if spec.Shared {
			s.last = spec.Destination.Name + "::" + name
		}
	}
}

// heartBeat is the header of CONNECT.
func heartBeat(d time.Duration) string {
	ms := strconv.FormatInt(d.Milliseconds(), 10)
	return ms + "," + ms
}

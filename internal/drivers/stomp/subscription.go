package stomp

import (
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// subscription holds the frames' headers with which a consumer subscribes and ends its subscription.
type subscription struct {
	subscribe []string // headers of SUBSCRIBE
	ack       string   // mode of acknowledgement
	// end are the headers of the UNSUBSCRIBE frames that end receiving, in order.
	end []string
	// remove are headers that remove a durable subscription afterwards; nil if there is nothing to remove.
	remove []string
	// removeAs is the client identity that remove needs when it is not the connection's own.
	removeAs string
	// last is not empty when only the last one of several consumers may remove it: the name of the shared queue.
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

// subscription returns the subscription of a consumer. ID is its number, identity the connection's client-id.
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
	// defaultWindow is how many bytes Artemis may send ahead when the user does not say.
	defaultWindow = 1 << 20
)

// flow limits how much the broker may send ahead. Artemis counts bytes: it goes on sending while less than the window
// is unacknowledged, so the limit never lets more than credit messages through, and fewer when they are large.
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

// checkVersion refuses settings that fail with an old version of the protocol: with 1.0 ActiveMQ Classic takes the name
// of the subscription that is to be removed for the client ID as well.
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
		// RabbitMQ ends receiving and removes the queue in one, whether or not others use it.
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

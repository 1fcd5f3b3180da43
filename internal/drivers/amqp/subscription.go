package amqp

import (
	"cmp"
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// subscription describes how a consumer attaches to its address. Names follow the JMS mapping of qpid-jms, which
// Artemis understands: a subscription is identified by the container ID and the link name up to its first bar; the text
// after the bar makes the names of links that share a subscription differ. For shared subscriptions without a client
// ID, the capability "global" removes the container ID from the identity.
type subscription struct {
	kind    driver.Kind
	name    string // of the subscription, or the consumer's
	durable bool
	shared  bool
	global  bool
	keep    bool
	link    string
}

// newSubscription returns the subscription of a consumer with a number of its own on its connection: links of the same
// name and direction would steal each other. Two consumers that claim one identity do so: the broker decides.
func newSubscription(spec *driver.ConsumerSpec, number uint64) subscription {
	s := subscription{
		kind: spec.Destination.Kind, name: cmp.Or(spec.Subscription, spec.Name), durable: spec.Durable,
		shared: spec.Shared, global: spec.Shared && spec.Connection.ClientID == "",
		keep: spec.Durable && spec.KeepSubscription,
	}
	switch s.link = s.name; {
	case s.global:
		s.link += "|global" + strconv.FormatUint(number, 10)
	case s.shared || !s.durable:
		s.link += "|" + strconv.FormatUint(number, 10)
	}
	return s
}

// apply sets the source of the link (Messaging, section 3.5.3).
func (s *subscription) apply(source *wire.Terminus) {
	source.Capabilities = []string{s.kind.String()}
	if s.shared {
		source.Capabilities = append(source.Capabilities, "shared")
	}
	if s.global {
		source.Capabilities = append(source.Capabilities, "global")
	}
	switch {
	case s.durable:
		source.Durable, source.ExpiryPolicy = wire.DurableUnsettledState, wire.ExpireNever
	case s.kind == driver.Topic:
		source.ExpiryPolicy = wire.ExpireLinkDetach
	}
}

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
	link    string // set by reserve
}

func newSubscription(spec *driver.ConsumerSpec) subscription {
	return subscription{
		kind: spec.Destination.Kind, name: cmp.Or(spec.Subscription, spec.Name), durable: spec.Durable,
		shared: spec.Shared, global: spec.Shared && spec.Connection.ClientID == "",
		keep: spec.Durable && spec.KeepSubscription,
	}
}

// reserve picks a link name that no other consumer of the connection uses: two links of the same name and direction
// would steal each other.
func (s *subscription) reserve(c *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := 1; ; n++ {
		if s.link = s.linkName(n); !c.names[s.link] {
			c.names[s.link] = true
			return
		}
		if s.durable && !s.shared {
			return // the same identity twice: the broker decides
		}
	}
}

// linkName returns the name of the n-th link: SUB|global1 for a shared subscription without a client ID, SUB|1 for one
// with it, and SUB, SUB|2 for others.
func (s *subscription) linkName(n int) string {
	switch {
	case s.global:
		return s.name + "|global" + strconv.Itoa(n)
	case s.shared || n > 1:
		return s.name + "|" + strconv.Itoa(n)
	}
	return s.name
}

func (s *subscription) free(c *connection) {
	c.mu.Lock()
	delete(c.names, s.link)
	c.mu.Unlock()
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

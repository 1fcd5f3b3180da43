package amqp

import (
	"cmp"
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Names of subscriptions follow the JMS mapping of qpid-jms, which Artemis understands: a subscription is identified by
// the container ID and the link name up to its first bar; the text after the bar makes the names of links that share a
// subscription differ. For shared subscriptions without a client ID, the capability "global" removes the container ID
// from the identity.

// isGlobal reports whether a subscription is shared by clients without a client ID.
func isGlobal(spec *driver.ConsumerSpec) bool { return spec.Shared && spec.Connection.ClientID == "" }

// linkName returns the link name of a consumer with a number of its own on its connection: links of the same name and
// direction would steal each other. Two consumers that claim one identity do so: the broker decides.
func linkName(spec *driver.ConsumerSpec, number uint64) string {
	name := cmp.Or(spec.Subscription, spec.Name)
	switch {
	case isGlobal(spec):
		return name + "|global" + strconv.FormatUint(number, 10)
	case spec.Shared || !spec.Durable:
		return name + "|" + strconv.FormatUint(number, 10)
	}
	return name
}

// setSource sets the kind of a consumer's source, and its subscription (Messaging, section 3.5.3).
func setSource(source *wire.Terminus, spec *driver.ConsumerSpec) {
	source.Capabilities = []string{spec.Destination.Kind.String()}
	if spec.Shared {
		source.Capabilities = append(source.Capabilities, "shared")
	}
	if isGlobal(spec) {
		source.Capabilities = append(source.Capabilities, "global")
	}
	switch {
	case spec.Durable:
		source.Durable, source.ExpiryPolicy = wire.DurableUnsettledState, wire.ExpireNever
	case spec.Destination.Kind == driver.Topic:
		source.ExpiryPolicy = wire.ExpireLinkDetach
	}
}

package amqp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestLinkNames: links have names of their own, unless the name is an identity. Brokers read a subscription's name up to
// the bar.
func TestLinkNames(t *testing.T) {
	named := driver.Connection{ClientID: "me"}
	for want, spec := range map[string]driver.ConsumerSpec{
		"c|7":       {Name: "c"},
		"s":         {Name: "c", Subscription: "s", Durable: true},
		"s|7":       {Name: "c", Subscription: "s", Shared: true, Connection: named},
		"s|global7": {Name: "c", Subscription: "s", Shared: true, Durable: true},
	} {
		require.Equal(t, want, linkName(&spec, 7))
	}
}

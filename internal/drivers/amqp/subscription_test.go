//go:build unix

package amqp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

func subscriptions(t *testing.T, a *brokertest.Artemis, dest driver.Destination) []string {
	t.Helper()
	list, err := a.Subscriptions(soon(t), dest.Name)
	require.NoError(t, err)
	names := []string{}
	for _, q := range list {
		names = append(names, q.Name)
	}
	return names
}

// TestSubscriptionNames: Artemis makes the queue that its other clients use for a subscription of that name, and nothing
// of it is left when its consumers have closed.
func TestSubscriptionNames(t *testing.T) {
	a := sharedBroker.Artemis(t)
	id := driver.Connection{Key: "one", Name: "ignored", ClientID: "shared-client"}
	for _, c := range []struct {
		name          string
		durable       bool
		first, second driver.Connection
		queue         string
	}{
		{"durable", true, conn("one"), conn("two"), "sub:global"},
		{"durable on one connection", true, conn("one"), conn("one"), "sub:global"},
		{"durable of a client", true, id, id, "shared-client.sub"},
		{"volatile", false, conn("one"), conn("two"), "sub:shared-volatile:global"},
		{"volatile on one connection", false, conn("one"), conn("one"), "sub:shared-volatile:global"},
		{"volatile of a client", false, id, id, "shared-client.sub:shared-volatile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, driver.OpenOptions{URL: a.AMQPURL()})
			dest := driver.Destination{Kind: driver.Topic, Name: "t." + t.Name()}
			spec := driver.ConsumerSpec{
				Destination: dest, Connection: c.first, Subscription: "sub", Durable: c.durable, Shared: true, Credit: 10,
			}
			first, err := r.tryConsumer(spec)
			require.NoError(t, err)
			spec.Connection, spec.Name = c.second, "consumer-1"
			second, err := r.tryConsumer(spec)
			require.NoError(t, err)
			require.Equal(t, []string{c.queue}, subscriptions(t, a, dest))

			require.NoError(t, first.Close(soon(t)))
			require.Equal(t, []string{c.queue}, subscriptions(t, a, dest), "the other still uses it")
			require.NoError(t, second.Close(soon(t)))
			if c.durable {
				require.Empty(t, subscriptions(t, a, dest))
				return
			}
			// The broker removes it by itself, a moment after its last consumer has gone.
			require.Eventually(t, func() bool { return len(subscriptions(t, a, dest)) == 0 }, patience, 20*time.Millisecond)
		})
	}
}

func TestRefusedSubscriptions(t *testing.T) {
	for _, c := range []struct {
		name string
		spec driver.ConsumerSpec
		hint string
	}{
		{"durable queue", driver.ConsumerSpec{Destination: driver.Destination{Name: "q"}, Durable: true}, "topic://q"},
		{"shared queue", driver.ConsumerSpec{Destination: driver.Destination{Name: "q"}, Shared: true}, "topic://q"},
		{"shared without a name", driver.ConsumerSpec{Destination: driver.Destination{Kind: driver.Topic, Name: "t"}, Shared: true}, "name"},
		{
			"kept without a client", driver.ConsumerSpec{
				Destination: driver.Destination{Kind: driver.Topic, Name: "t"}, Durable: true, KeepSubscription: true,
			}, "--clientID",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newSubscription(c.spec)
			require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err))
			require.Contains(t, driver.HintOf(err), c.hint)
		})
	}
}

func TestLinkNames(t *testing.T) {
	for _, c := range []struct {
		s    subscription
		want []string
	}{
		{subscription{name: "s"}, []string{"s", "s|2", "s|3"}},
		{subscription{name: "s", durable: true}, []string{"s", "s", "s"}},
		{subscription{name: "s", durable: true, shared: true}, []string{"s", "s|2", "s|3"}},
		{subscription{name: "s", durable: true, shared: true, global: true}, []string{"s|global", "s|global2", "s|global3"}},
		{subscription{name: "s", shared: true}, []string{"s|volatile1", "s|volatile2", "s|volatile3"}},
		{subscription{name: "s", shared: true, global: true}, []string{"s|global-volatile1", "s|global-volatile2", "s|global-volatile3"}},
	} {
		conn := &connection{names: map[string]bool{}}
		var got []string
		for range 3 {
			s := c.s
			s.reserve(conn)
			got = append(got, s.link)
		}
		require.Equal(t, c.want, got)
	}
}

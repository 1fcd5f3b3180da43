//go:build unix

package stomp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// deadline bounds a test on a real broker.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return ctx
}

// TestLeavesNoSubscription asks the broker for the subscriptions left when consumers have closed.
func TestLeavesNoSubscription(t *testing.T) {
	a := shared.Artemis(t)
	ctx := deadline(t)
	for name, c := range map[string]struct {
		change func(*driver.ConsumerSpec)
		kept   int
	}{
		"anonymous":      {func(*driver.ConsumerSpec) {}, 0},
		"durable":        {func(s *driver.ConsumerSpec) { s.Durable = true }, 0},
		"durable kept":   {func(s *driver.ConsumerSpec) { s.Durable, s.KeepSubscription = true, true }, 1},
		"shared":         {func(s *driver.ConsumerSpec) { s.Shared = true }, 0},
		"shared, no ID":  {func(s *driver.ConsumerSpec) { s.Shared, s.Connection.ClientID = true, "" }, 0},
		"shared durable": {func(s *driver.ConsumerSpec) { s.Shared, s.Durable = true, true }, 0},
		"shared, kept":   {func(s *driver.ConsumerSpec) { s.Shared, s.Durable, s.KeepSubscription = true, true, true }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDriver(t, a.STOMPURL())
			topic := "topic " + name
			var consumers []driver.Consumer
			for _, key := range []string{"1", "2"} {
				spec := driver.ConsumerSpec{
					Connection:   driver.Connection{Key: key, Name: "perfmq-" + key, ClientID: "id of " + name},
					Destination:  driver.Destination{Kind: driver.Topic, Name: topic},
					Subscription: "sub",
				}
				c.change(&spec)
				if spec.Durable && !spec.Shared && key == "2" {
					break
				}
				k := musttest.Get(d.Consumer(ctx, spec))(t)
				consumers = append(consumers, k)
			}
			require.NotEmpty(t, musttest.Get(a.Subscriptions(ctx, topic))(t))
			for _, k := range consumers {
				require.NoError(t, k.Close(ctx))
			}
			require.EventuallyWithT(t, func(t *assert.CollectT) {
				subs, err := a.Subscriptions(ctx, topic)
				assert.NoError(t, err)
				assert.Len(t, subs, c.kept)
			}, patience, 20*time.Millisecond)
			require.EventuallyWithT(t, func(t *assert.CollectT) { // the broker notices when we hang up
				left, err := a.Connections(ctx)
				assert.NoError(t, err)
				assert.Empty(t, left)
			}, patience, 20*time.Millisecond)
		})
	}
}

func openDriver(t *testing.T, url string, options ...string) driver.Driver {
	t.Helper()
	o := Factory().NewOptions()
	require.NoError(t, driver.SetOptions(o, options))
	d, err := Factory().Open(t.Context(), driver.OpenOptions{
		URL: url, User: brokertest.User, Password: brokertest.Password, ConnectTimeout: patience, Options: o,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
	return d
}

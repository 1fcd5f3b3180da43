//go:build unix && features

package rocketmq5go

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestConformanceTotals compares the numbers of sent and received messages with the offsets of a real broker behind its
// proxy. It takes part in `make features` only.
func TestConformanceTotals(t *testing.T) {
	const n = 3000
	broker := brokertest.StartRocketMQ(t, brokertest.WithRocketMQProxy())
	dest, group := driver.Destination{Name: "totals"}, "perfmq-queue-totals"
	require.NoError(t, broker.CreateTopic(t.Context(), dest.Name, 8))
	require.NoError(t, broker.CreateGroup(t.Context(), group, false))
	f := Factory()
	d := musttest.Get(f.Open(t.Context(), driver.OpenOptions{
		URL: broker.ProxyURL(), ConnectTimeout: time.Minute, Options: f.NewOptions(),
	}))(t)
	defer func() { require.NoError(t, d.Close(t.Context())) }()
	accepted, received := librarytest.Exchange(t, d, dest, n)
	stored := musttest.Get(broker.TopicMessages(t.Context(), dest.Name))(t)
	// On a machine so busy that the library gives up on a send, after 3 s, it sends the message again: two are stored.
	require.Positive(t, accepted)
	require.GreaterOrEqual(t, stored, int64(accepted))
	require.GreaterOrEqual(t, received, accepted)
	require.Eventually(t, func() bool {
		settled, err := broker.Consumed(t.Context(), group, dest.Name)
		return err == nil && settled == stored
	}, time.Minute, 100*time.Millisecond, "messages that the group has acknowledged")
}

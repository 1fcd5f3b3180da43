//go:build unix && !race

// The library has data races of its own, which the race detector would report as ours: scripts/test.sh runs these tests
// without it.

package rocketmqgo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/internal/drivers/library/rocketmqgo"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// allocations is the library's cost per message that is sent and received, the embedded broker included.
const allocations = 400

const (
	unordered = "the library sends each message in a goroutine of its own, to the queues of the topic in turn"
	unshared  = "the library has connections for each producer and consumer"
)

// left are the goroutines that the library leaves behind after Shutdown.
func left() []goleak.Option {
	const lib = "github.com/apache/rocketmq-client-go/v2/"
	var list []goleak.Option
	for _, f := range []string{
		lib + "internal/remote.(*remotingClient).receiveResponse", // of the connection to the name server, which is never closed: two minutes
		lib + "internal.(*rmqClient).Start.func1.1",               // sleeps for 10 s before it looks whether it is to end
		lib + "internal.(*rmqClient).Start.func1.3",               // likewise, 1 s
		lib + "internal.(*rmqClient).Start.func1.4",               // likewise, 10 s
		lib + "consumer.(*pushConsumer).Start.func1.1.1",          // waits for the answer to a pull, on a connection that is closed: 30 s
		lib + "consumer.(*pushConsumer).Start.func1.2",            // sleeps until messages may have expired: 15 minutes
		// of a queue that two rebalances have made at a time: the second replaces the first, which is never closed
		// (consumer.go, updateProcessQueueTable)
		lib + "consumer.(*processQueue).getMessages",
		lib + "consumer.(*statsItemSet).init.func4", // sleeps until the next minute
		lib + "consumer.(*statsItemSet).init.func5", // likewise, hour
		lib + "consumer.(*statsItemSet).init.func6", // likewise, day
	} {
		list = append(list, goleak.IgnoreAnyFunction(f))
	}
	return list
}

// embedded is the configuration on the embedded broker. Its goroutines serve the connections to the name server that
// stay.
func embedded(t testing.TB) drivertest.Config {
	cfg := librarytest.Anonymous(t, rocketmqgo.Factory())
	host := strings.TrimPrefix(cfg.URL, cfg.Factory.Schemes[0]+"://")
	cfg.MinBody, cfg.MaxBody, cfg.Log, cfg.Allocations = 1, 1<<20, true, allocations
	cfg.Path = func(t testing.TB) drivertest.Path { return brokertest.NewRocketMQPath(t, host, host) }
	cfg.Timeout = 50 * time.Second // the library takes up to 33 s to receive again
	cfg.Unordered, cfg.Unshared = unordered, unshared
	cfg.IgnoreGoroutines = append(left(),
		goleak.IgnoreAnyFunction("github.com/perfmq/perfmq/internal/broker/rocketmq.(*Server).Serve"),
		goleak.IgnoreAnyFunction("github.com/perfmq/perfmq/internal/broker/rocketmq.(*conn).write"))
	return cfg
}

func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("the library waits for 10 seconds")
	}
	cfg := embedded(t)
	cfg.Mode = true // the rest in make features
	drivertest.Run(t, cfg)
}

// TestTotals compares the numbers of sent and received messages with the counters of a real broker.
func TestTotals(t *testing.T) {
	const n = 3000
	broker := brokertest.StartRocketMQ(t)
	f := rocketmqgo.Factory()
	d, err := f.Open(t.Context(), driver.OpenOptions{URL: broker.URL(), ConnectTimeout: time.Minute, Options: f.NewOptions()})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close(t.Context())) }()
	librarytest.Exchange(t, d, driver.Destination{Name: "first"}, 1) // or the broker has no counters
	dest := driver.Destination{Name: "totals"}
	before := musttest.Get(broker.Delivered(t.Context()))(t)
	accepted, received := librarytest.Exchange(t, d, dest, n)
	stored := musttest.Get(broker.TopicMessages(t.Context(), dest.Name))(t)
	// All are n, unless the machine is so busy that the library gives up on a send, after 3 s: the broker has it or not.
	require.Positive(t, accepted)
	require.IsNonDecreasing(t, []int64{int64(accepted), int64(received), stored, n}, "accepted, received, stored, sent: %s", dest)
	require.Eventually(t, func() bool {
		after, err := broker.Delivered(t.Context())
		return err == nil && after-before >= int64(received) && after-before <= stored
	}, time.Minute, 100*time.Millisecond, "messages that the broker gave to consumers")
}

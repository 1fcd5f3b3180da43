//go:build unix && features && !race

package rocketmqgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/rocketmqgo"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// These take part in `make features` only: see scripts/features.sh.

func TestConformanceEmbedded(t *testing.T) { drivertest.Run(t, embedded(t)) }

func TestConformanceRocketMQ(t *testing.T) {
	broker := brokertest.StartRocketMQ(t)
	drivertest.Run(t, drivertest.Config{
		Factory: rocketmqgo.Factory(), URL: broker.URL(), MinBody: 1, MaxBody: 1 << 20, Log: true, Allocations: allocations,
		Timeout: 50 * time.Second, Unordered: unordered, Unshared: unshared, Alone: true,
		Path: func(t testing.TB) drivertest.Path {
			return brokertest.NewRocketMQPath(t, broker.NameServer(), broker.Broker())
		},
		Inspect: func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
			t.Helper()
			return inspect(t, broker, dest)
		},
		IgnoreGoroutines: append(left(),
			goleak.IgnoreAnyFunction("github.com/perfmq/perfmq/internal/brokertest.(*process).run"),
			goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2")),
	})
}

// inspect looks at messages with the library itself; the broker's copies are in the store of the embedded broker.
func inspect(t testing.TB, broker *brokertest.RocketMQ, dest driver.Destination) func(int) []drivertest.Header {
	t.Helper()
	require.NoError(t, broker.CreateTopic(t.Context(), dest.Name, 2))
	c, err := consumer.NewPushConsumer(consumer.WithNameServer(primitive.NamesrvAddr{broker.NameServer()}), consumer.WithInstance("inspect-"+dest.Name),
		consumer.WithGroupName("inspect-"+dest.Name), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	require.NoError(t, err)
	came := make(chan drivertest.Header, 1000)
	require.NoError(t, c.Subscribe(dest.Name, consumer.MessageSelector{}, func(_ context.Context, list ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range list {
			properties := m.GetProperties()
			properties["empty"] += "" // brokers drop properties without a value (MessageDecoder.string2messageProperties)
			came <- drivertest.Header{Properties: properties, Group: m.GetProperty("__SHARDINGKEY")}
		}
		return consumer.ConsumeSuccess, nil
	}))
	require.Eventually(t, func() bool { return c.Start() == nil }, time.Minute, 50*time.Millisecond)
	t.Cleanup(func() { require.NoError(t, c.Shutdown()) })
	return func(n int) []drivertest.Header {
		var list []drivertest.Header
		for deadline := time.After(time.Minute); len(list) < n; {
			select {
			case h := <-came:
				list = append(list, h)
			case <-deadline:
				require.FailNowf(t, "timeout", "%d messages of %d came", len(list), n)
			}
		}
		return list
	}
}

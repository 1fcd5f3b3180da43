//go:build unix

package rocketmq5

import (
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// shared is started by the first test that asks and ended by TestMain. It creates no groups by itself.
var shared = brokertest.Shared{RocketMQOptions: []brokertest.RocketMQOption{
	brokertest.WithRocketMQProxy(), brokertest.WithRocketMQProperty("autoCreateSubscriptionGroup", "false"),
}}

func TestMain(m *testing.M) { brokertest.Main(m, &shared) }

// conformance has the differences from other brokers:
//   - MinBody 1, MaxBody 1 MiB, Log: as over remoting.
//   - name-server: the proxy creates no topics and no groups.
func conformance(t *testing.T, options ...string) drivertest.Config {
	broker := shared.RocketMQ(t)
	return drivertest.Config{
		Factory: Factory(), URL: broker.ProxyURL(), MinBody: 1, MaxBody: 1 << 20, Log: true,
		Options:   append(options, "name-server="+broker.NameServer(), "send-timeout=1m", "invisible-time=10s"),
		Unordered: "the messages of a topic are spread over its queues",
		Ungrouped: "only an orderly consumer group keeps a message group together",
		Printable: "the proxy refuses control characters",
	}
}

// TestConformance has the simple consumer. With consumer=push the proxy may give out messages twice when their consumer
// was cut off (5.5.0), see doc.go.
func TestConformance(t *testing.T) {
	cfg := conformance(t)
	cfg.Broker = "RocketMQ proxy " + brokertest.RocketMQVersion
	drivertest.Run(t, cfg)
}

//go:build unix && features

package rocketmq

import (
	"testing"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// TestConformanceRocketMQ49 takes part in `make features` only: see scripts/features.sh.
func TestConformanceRocketMQ49(t *testing.T) {
	broker := brokertest.StartRocketMQ(t, brokertest.WithRocketMQ49())
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: broker.URL(), MinBody: 1, MaxBody: 1 << 20, Log: true,
		Broker: broker.Title(), Unordered: unordered, Alone: true,
		Path: func(t testing.TB) drivertest.Path {
			return brokertest.NewRocketMQPath(t, broker.NameServer(), broker.Broker())
		},
	})
}

// TestConformanceOfSending takes part in it as well.
func TestConformanceOfSending(t *testing.T) {
	for name, options := range map[string][]string{
		"oneway": {"send=oneway"},
		"batch":  {"send=batch", "batch-size=7"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := conformance(t, options...)
			cfg.Sending, cfg.AtMostOnce = true, name == "oneway"
			if name == "batch" {
				cfg.Lacks = noReplies()
			}
			conformanceOfMode(t, &cfg)
		})
	}
}

func noReplies() map[drivertest.Feature]string {
	const why = "replies are sent one by one"
	return map[drivertest.Feature]string{drivertest.RequestReply: why, drivertest.DynamicReply: why}
}

func conformanceOfMode(t *testing.T, cfg *drivertest.Config) {
	cfg.Mode = true
	cfg.Allocations = 4           // one message in flight: waits of a busy machine have few messages to be spread over
	cfg.Timeout = 2 * time.Minute // brokers forget the locks of a consumer that was cut off after one
	drivertest.Run(t, *cfg)
}

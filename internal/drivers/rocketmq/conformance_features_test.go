//go:build unix && features

package rocketmq

import (
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// TestConformanceRocketMQ49 takes part in `make features` only: see scripts/features.sh.
func TestConformanceRocketMQ49(t *testing.T) {
	broker := brokertest.StartRocketMQ(t, brokertest.WithRocketMQ49())
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: broker.URL(), MinBody: 1, MaxBody: 1 << 20, Log: true,
		Broker: broker.Title(),
		Path: func(t testing.TB) drivertest.Path {
			return brokertest.NewRocketMQPath(t, broker.NameServer(), broker.Broker())
		},
		Victim: func(t testing.TB) (string, func()) {
			victim := brokertest.StartRocketMQ(t, brokertest.WithRocketMQ49())
			return victim.URL(), victim.Kill
		},
	})
}

// TestConformanceCompressed takes part in it as well.
func TestConformanceCompressed(t *testing.T) {
	cfg := conformance(t, "compress=true", "send=sync")
	conformanceOfMode(t, &cfg)
}

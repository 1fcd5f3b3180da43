//go:build unix

package rocketmq_test

import (
	"testing"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/brokertest"
	driver "github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

const (
	user, password = "perfmq-user", "perfmq-secret"
)

// conformance is as for the real broker (see the driver's own test), but that we take empty bodies from other
// protocols.
func conformance(t *testing.T, options ...string) drivertest.Config {
	b := start(t, storetest.Limits(), rocketmq.Options{AccessKey: user, SecretKey: password})
	cfg := drivertest.Config{
		Factory: driver.Factory(), URL: b.url(), User: user, Password: password, WrongPassword: "wrong",
		Options: append([]string{"send-timeout=1m"}, options...), // a busy machine takes more than 3 s for a large body
		MinBody: 1, MaxBody: 1 << 20, Log: true,                  // TestTooLargeMessages has more
		Path:        func(t testing.TB) drivertest.Path { return brokertest.NewRocketMQPath(t, b.addr, b.addr) },
		Allocations: 10, // of the broker, for the most part
		Unordered:   unordered,
	}
	storetest.Configure(&cfg, b.store)
	cfg.Rejected = func(testing.TB) int64 { return int64(b.Stats().Dead) }
	return cfg
}

const unordered = "the messages of a topic are spread over its queues"

func TestConformance(t *testing.T) {
	cfg := conformance(t)
	cfg.Broker = "the embedded broker"
	drivertest.Run(t, cfg)
}

func TestConformanceOfModes(t *testing.T) {
	for name, options := range map[string][]string{
		"oneway": {"send=oneway"},
		"sync":   {"send=sync"},
		"batch":  {"send=batch", "batch-size=7"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := conformance(t, options...)
			cfg.AtMostOnce, cfg.Mode, cfg.Sending = name == "oneway", true, name != "sync"
			drivertest.Run(t, cfg)
		})
	}
}

//go:build unix

package rocketmqgo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/internal/drivers/library/rocketmqgo"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
	"go.uber.org/goleak"
)

func TestTry(t *testing.T) {
	cfg := librarytest.Anonymous(t, rocketmqgo.Factory())
	cfg.Timeout = 12*time.Second; cfg.MinBody, cfg.MaxBody, cfg.Allocations = 1, 1<<20, 1000
	host := strings.TrimPrefix(cfg.URL, "rocketmq://")
	cfg.Path = func(t testing.TB) drivertest.Path { return brokertest.NewRocketMQPath(t, host, host) }
	cfg.IgnoreGoroutines = []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/perfmq/perfmq/internal/broker/rocketmq.(*Server).Serve"),
	}
	drivertest.Run(t, cfg)
}

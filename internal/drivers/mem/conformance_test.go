package mem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

func TestConformance(t *testing.T) {
	drivertest.Run(t, config(mem.New()))
}

func config(b *mem.Broker) drivertest.Config {
	return drivertest.Config{
		Factory: b.Factory(), User: "u", Password: "p", WrongPassword: "x", Options: []string{"auth=u:p"},
		Unreachable: "mem://unreachable", Silent: "mem://silent",
		Timeout: 3 * time.Second, Quiet: 20 * time.Millisecond, TTL: 50 * time.Millisecond,
		Path: func(t testing.TB) drivertest.Path { return newPath(t, b) },
		Victim: func(t testing.TB) (string, func()) {
			t.Cleanup(func() { require.NoError(t, b.Set(options("auth=u:p"))) })
			return "mem://local", func() { b.Disconnect() }
		},
	}
}

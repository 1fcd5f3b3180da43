//go:build unix

package rocketmq

import (
	"context"
	"os/exec"
	"strconv"
	"testing"

	"github.com/perfmq/perfmq/internal/interoptest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestInterop: RocketMQ's own client asks us, and answers us.
func TestInterop(t *testing.T) {
	b, source := shared.get(t), interoptest.Source(t, "Rocket.java")
	interoptest.Run(t, Factory(), driver.OpenOptions{URL: b.URL()}, func(ctx context.Context, role, queue string) *exec.Cmd {
		return b.Command(ctx, source, b.NameServer(), role, queue, strconv.Itoa(interoptest.Requests))
	})
}

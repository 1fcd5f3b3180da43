//go:build unix && features

package rocketmq_test

import (
	"testing"

	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// TestConformanceCompressed takes part in `make features` only: see scripts/features.sh.
func TestConformanceCompressed(t *testing.T) {
	cfg := conformance(t, "compress=true", "queues=3", "send=sync") // or nothing fills the network's buffers
	cfg.Mode = true
	drivertest.Run(t, cfg)
}

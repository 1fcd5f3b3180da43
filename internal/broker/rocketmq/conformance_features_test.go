//go:build unix && features

package rocketmq_test

import (
	"testing"

	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// TestConformanceOfMoreModes takes part in `make features` only: see scripts/features.sh.
func TestConformanceOfMoreModes(t *testing.T) {
	for name, options := range map[string][]string{
		"sync":       {"send=sync", "order=orderly"},
		"compressed": {"compress=true", "queues=3", "send=sync"}, // or nothing fills the network's buffers
	} {
		t.Run(name, func(t *testing.T) {
			cfg := conformance(t, options...)
			cfg.Mode = true
			drivertest.Run(t, cfg)
		})
	}
}

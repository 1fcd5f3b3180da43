package stats

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCrowded(t *testing.T) {
	for name, c := range map[string]struct {
		health          Health
		machine, others float64
		crowded         bool
	}{
		"not known":               {Health{CPU: time.Second}, 0, 0, false},
		"idle":                    {Health{CPU: 1 * time.Second, Machine: 5 * time.Second, MachineAll: 20 * time.Second}, 0.25, 0.2, false},
		"busy with others":        {Health{CPU: 5 * time.Second, Machine: 19 * time.Second, MachineAll: 20 * time.Second}, 0.95, 0.7, true},
		"busy with the tester":    {Health{CPU: 18 * time.Second, Machine: 19 * time.Second, MachineAll: 20 * time.Second}, 0.95, 0.05, false},
		"counted a tick too late": {Health{CPU: 2 * time.Second, Machine: time.Second, MachineAll: 20 * time.Second}, 0.05, 0, false},
	} {
		require.InDelta(t, c.machine, c.health.MachineShare(), 1e-9, name)
		require.InDelta(t, c.others, c.health.OthersShare(), 1e-9, name)
		require.Equal(t, c.crowded, c.health.Crowded(), name)
	}
}

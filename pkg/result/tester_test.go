package result

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCrowded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cpu, busy, all  int64
		machine, others float64
		crowded         bool
	}{
		"not known":               {1, 0, 0, 0, 0, false},
		"idle":                    {1, 5, 20, 0.25, 0.2, false},
		"busy with others":        {5, 19, 20, 0.95, 0.7, true},
		"busy with perfmq":        {18, 19, 20, 0.95, 0.05, false},
		"counted a tick too late": {2, 1, 20, 0.05, 0, false},
	} {
		h := Tester{CPU: c.cpu, MachineBusy: c.busy, MachineAll: c.all}
		require.InDelta(t, c.machine, h.MachineShare(), 1e-9, name)
		require.InDelta(t, c.others, h.OthersShare(), 1e-9, name)
		require.Equal(t, c.crowded, h.Crowded(), name)
	}
}

func TestTesterLimits(t *testing.T) {
	t.Parallel()
	h := Tester{CPU: 1_900_000, Wall: 1_000_000, Cores: 2}
	require.InDelta(t, 0.95, h.CPUShare(), 1e-9)
	require.Zero(t, (&Tester{}).CPUShare())
	require.False(t, Late(MinLate-1, 100), "few are not significant")
	require.True(t, Late(MinLate, 100))
	require.False(t, Late(MinLate, 100*MinLate), "1% is not above the limit")
}

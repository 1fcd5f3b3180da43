package stats

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMachineCPU: the time that busy threads use is part of the time that the machine has used.
func TestMachineCPU(t *testing.T) {
	m := newHealthMeter(time.Now())
	var wg sync.WaitGroup
	const busy = 500 * time.Millisecond
	for range runtime.NumCPU() {
		wg.Go(func() {
			for end := time.Now().Add(busy); time.Now().Before(end); {
				_ = end // busy
			}
		})
	}
	wg.Wait()
	h := m.interval(time.Now(), new(Counters), work{})
	require.Greater(t, h.Machine, h.CPU/2)
	require.GreaterOrEqual(t, h.MachineAll, h.Machine)
	require.Positive(t, h.MachineShare()) // its size depends on our part of the machine
	require.Equal(t, h.Machine, m.sum.Machine)
}

func TestParseMachine(t *testing.T) {
	for text, want := range map[string][2]time.Duration{
		"cpu  100 20 30 700 40 5 6 7 8 9\ncpu0 1 2 3\n": {168 * tick, 908 * tick},
		"cpu  1 1 1 1 1 1 1 1":                          {6 * tick, 8 * tick},
		"cpu  1 1 1 1 1 1 1":                            {},
		"cpu  1 1 x 1 1 1 1 1 1 1\n":                    {},
		"intr 1 1 1 1 1 1 1 1 1 1\n":                    {},
		"":                                              {},
	} {
		busy, all := parseMachine([]byte(text))
		require.Equal(t, want, [2]time.Duration{busy, all}, text)
	}
}

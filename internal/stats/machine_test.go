//go:build linux

package stats

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// TestMachineCPU: the time that busy threads use is part of the time that the machine has used.
func TestMachineCPU(t *testing.T) {
	m := newHealthMeter(time.Now())
	var h result.Tester
	for tries := 0; tries == 0 || h.MachineBusy <= h.CPU/2 && tries < 20; tries++ { // a virtual machine may miss ticks of its kernel
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
		h = m.interval(time.Now(), new(Counters))
	}
	require.Greater(t, h.MachineBusy, h.CPU/2)
	require.GreaterOrEqual(t, h.MachineAll, h.MachineBusy)
	require.Positive(t, h.MachineShare()) // its size depends on our part of the machine
}

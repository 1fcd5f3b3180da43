package stats

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCPUWait: more busy threads than processors must wait for each other.
func TestCPUWait(t *testing.T) {
	n := 2 * runtime.NumCPU()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	before, known := cpuWait()
	require.True(t, known)
	m := newHealthMeter(time.Now())
	var wg sync.WaitGroup
	const busy = 300 * time.Millisecond
	for range n {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for end := time.Now().Add(busy); time.Now().Before(end); {
				_ = end // busy
			}
		})
	}
	wg.Wait()
	after, _ := cpuWait()
	// Half of the threads' time is n/2 * busy; a quarter of it leaves room for how the kernel shares out.
	require.Greater(t, after-before, time.Duration(n)*busy/8)
	h := m.interval(time.Now(), Counters{})
	require.Greater(t, h.CPUWait, time.Duration(n)*busy/8)
	require.True(t, h.WaitKnown)
	require.Greater(t, h.WaitShare(), 0.2)
	require.Equal(t, h.CPUWait, m.whole(time.Now(), Counters{}).CPUWait)
}

func TestWaitShare(t *testing.T) {
	require.Zero(t, Health{}.WaitShare())
	require.InDelta(t, 0.25, Health{CPU: 3, CPUWait: 1}.WaitShare(), 1e-9)
}

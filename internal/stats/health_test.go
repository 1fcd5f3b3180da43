package stats

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// TestLateSendsOfASecond: late sends are judged by the state of the machine in their second.
func TestLateSendsOfASecond(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{start: time.Now()}
	m := newHealthMeter(clock.start)
	var machine, sum result.Tester // in the next second, and of all
	m.used = func() result.Tester { return machine }
	m.pulse = NewPulse(clock)
	now := clock.start
	second := func(late uint64, crowded, paused bool) result.Tester {
		now = now.Add(time.Second)
		clock.now += time.Second
		if machine = (result.Tester{}); crowded {
			machine = used(0, time.Second, time.Second)
		}
		if !paused {
			m.pulse.beat.Store(int64(clock.now))
		}
		h := m.interval(now, &Counters{result.Sent: 1000, result.LateSends: late})
		sum.Follow(&h)
		return h
	}
	h := second(10, false, false)
	require.Zero(t, h.LateExcused)
	h = second(300, true, false)
	require.EqualValues(t, 300, h.LateExcused)
	h = second(7, false, true)
	require.EqualValues(t, 7, h.LateExcused)
	require.EqualValues(t, 1, h.Pauses)
	for left := h.PauseMax; left > 0; left -= 1_000_000 { // sends that it delayed leave within a time as long
		h = second(4, false, false)
		require.EqualValues(t, 4, h.LateExcused)
	}
	h = second(2, false, false)
	require.Zero(t, h.LateExcused)
	require.EqualValues(t, 311, sum.LateExcused)
	require.EqualValues(t, 1, sum.Pauses)
	require.EqualValues(t, 5_000_000, sum.Wall)
}

// TestClockSteps: small changes, of a clock that is kept in time, are no steps.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ within, step, forward, backward time.Duration }{
		{time.Second, 400 * time.Microsecond, 0, 0},
		{time.Second, 2 * time.Second, 2 * time.Second, 0},
		{time.Second, -400 * time.Microsecond, 0, 0},
		{time.Minute, 30 * time.Millisecond, 0, 0},
		{time.Second, -1500 * time.Millisecond, 0, 1500 * time.Millisecond},
	} {
		forward, backward := clockStep(tt.step, tt.within)
		require.Equal(t, []int64{tt.forward.Microseconds(), tt.backward.Microseconds()}, []int64{forward, backward}, tt)
	}
}

// TestMemoryPeak: a run reports the peak of the process. It is not measured while a test has a fake clock.
func TestMemoryPeak(t *testing.T) {
	now := time.Now()
	require.Greater(t, NewCollector(nil, nil, now).Tester(now).MemoryPeak, uint64(1<<20))
	c, p := NewCollector(nil, nil, now), NewPulse(nil)
	p.IgnoreMachine()
	c.SetPulse(p)
	require.Zero(t, c.Tester(now).MemoryPeak)
}

// The pauses of perfmq's own garbage collections count in the interval in which they are.
func TestPausesOfGarbageCollections(t *testing.T) {
	c := NewCollector(nil, nil, time.Now())
	for range 20 {
		runtime.GC()
	}
	require.Positive(t, c.Collect(Measure, time.Now(), false).Tester.GCPause)
}

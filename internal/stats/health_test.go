package stats

import (
	"testing"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
	"github.com/stretchr/testify/require"
)

// Late sends of a second are judged by the state of the machine in that second, not by its average over the run.
func TestLateSendsAreJudgedByInterval(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{start: time.Now()}
	m := newHealthMeter(clock.start)
	var machine Health // in the next second
	m.used = func() Health { return machine }
	m.pulse = NewPulse(clock)
	now := clock.start
	beat := func() { m.pulse.beat.Store(int64(clock.now)) }
	var sum Health
	second := func(late uint64, prepare func()) Health {
		now = now.Add(time.Second)
		clock.now += time.Second
		if prepare == nil {
			prepare = beat
		}
		prepare()
		h := m.interval(now, &Counters{result.Sent: 1000, result.LateSends: late})
		sum.Add(&h)
		machine = Health{}
		return h
	}
	crowded := func() {
		beat()
		machine = Health{Machine: time.Second, MachineAll: time.Second}
	}
	paused := func() {} // without a beat

	h := second(10, nil)
	require.EqualValues(t, 10, h.LateOwn())
	h = second(300, crowded)
	require.EqualValues(t, 300, h.LateCrowded)
	require.Zero(t, h.LateOwn())
	h = second(7, paused)
	require.EqualValues(t, 7, h.LatePaused)
	require.Zero(t, h.LateOwn())
	require.EqualValues(t, 1, h.Pauses)
	for left := h.PauseMax; left > 0; left -= time.Second { // sends held up by it leave within a time as long
		h = second(4, nil)
		require.EqualValues(t, 4, h.LatePaused)
	}
	h = second(2, nil)
	require.EqualValues(t, 2, h.LateOwn())

	require.EqualValues(t, 323, sum.LateSends)
	require.EqualValues(t, 12, sum.LateOwn())
	require.EqualValues(t, 300, sum.LateCrowded)
	require.EqualValues(t, 11, sum.LatePaused)
	require.EqualValues(t, 5000, sum.Sent)
	require.False(t, sum.Late(sum.LateOwn()), "12 of 5000")
	require.True(t, sum.Late(sum.LateCrowded))
	require.EqualValues(t, 1, sum.Pauses)
	require.Equal(t, 5*time.Second, sum.Wall)
}

// A clock that is set forward and back again was set twice.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	var sum Health
	for _, h := range []Health{
		{Wall: time.Second, ClockForward: 400 * time.Microsecond}, // kept in time
		{Wall: time.Second, ClockForward: 2 * time.Second},
		{Wall: time.Second, ClockBackward: 400 * time.Microsecond},
		{Wall: time.Minute, ClockForward: 30 * time.Millisecond}, // kept in time, for a minute
		{Wall: time.Second, ClockBackward: 1500 * time.Millisecond},
		{Wall: time.Second, ClockBackward: 500 * time.Millisecond},
	} {
		sum.Add(&h)
	}
	require.Equal(t, 2*time.Second, sum.ClockForward)
	require.Equal(t, 2*time.Second, sum.ClockBackward)
}

// TestMemoryPeak: the peak of a run is that of the process, and is not measured while a test has a fake clock.
func TestMemoryPeak(t *testing.T) {
	now := time.Now()
	require.Greater(t, NewCollector(nil, nil, now).Health(now).MemoryPeak, uint64(1<<20))
	c, p := NewCollector(nil, nil, now), NewPulse(nil)
	p.IgnoreMachine()
	c.SetPulse(p)
	require.Zero(t, c.Health(now).MemoryPeak)
}

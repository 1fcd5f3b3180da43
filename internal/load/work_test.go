package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseWork(t *testing.T) {
	for text, want := range map[string]Work{
		"2ms":     {Min: 2 * time.Millisecond, Max: 2 * time.Millisecond},
		"0s":      {},
		"1ms-5ms": {Min: time.Millisecond, Max: 5 * time.Millisecond},
		"exp:2ms": {Mean: 2 * time.Millisecond},
	} {
		got, err := ParseWork(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		require.Equal(t, text, got.String())
	}
	for _, text := range []string{"", "2", "-2ms", "5ms-1ms", "exp:", "exp:x", "2ms-", "2h", "1ms-5ms-9ms", "exp:1ms-2ms"} {
		_, err := ParseWork(text)
		require.Error(t, err, text)
	}
}

func TestWorkIsWithinItsBounds(t *testing.T) {
	var sum time.Duration
	const n = 100_000
	for range n {
		d := Work{Min: time.Millisecond, Max: 3 * time.Millisecond}.next()
		require.True(t, d >= time.Millisecond && d <= 3*time.Millisecond)
		sum += Work{Mean: 2 * time.Millisecond}.next()
	}
	require.InEpsilon(t, 2*time.Millisecond, sum/n, 0.05) // of 100,000 the mean deviates by 0.3%, one time in three
}

// TestWorker: each message has all of its work, whether it waited or not; idle time is not made up for, a late sleep
// is.
func TestWorker(t *testing.T) {
	const work = 2 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		clock.Begin()
		w := newWorker(t.Context(), &Job{Work: Work{Min: work, Max: work}}, clock, false)
		defer w.wait.Close()
		for range 500 {
			w.workOn(clock.Now())
		}
		require.Equal(t, time.Second, clock.Now())
		for _, idle := range []time.Duration{time.Microsecond, time.Millisecond, time.Second} {
			<-time.After(idle)
			before := clock.Now()
			w.workOn(before)
			require.Equal(t, work, clock.Now()-before)
		}
		w.late = 300 * time.Microsecond
		before := clock.Now()
		w.workOn(before)
		require.Equal(t, work-300*time.Microsecond, clock.Now()-before)
		require.Zero(t, w.late)
	})
}

// TestWorkerOfARate: messages that come a moment late do not lower the rate, and after idle time there is no burst.
func TestWorkerOfARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		clock.Begin()
		w := newWorker(t.Context(), &Job{Each: 2 * time.Millisecond}, clock, false)
		defer w.wait.Close()
		for range 500 {
			w.workOn(clock.Now())
			<-time.After(time.Millisecond)
		}
		require.InDelta(t, 1.0, clock.Now().Seconds(), 0.01)
		<-time.After(time.Second)
		before := clock.Now()
		w.workOn(before)
		w.workOn(clock.Now())
		require.Equal(t, 4*time.Millisecond, clock.Now()-before)
	})
}

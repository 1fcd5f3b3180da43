package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseWork(t *testing.T) {
	for text, want := range map[string]Work{
		"2ms":     {Mean: 2 * time.Millisecond},
		"0s":      {},
		"exp:2ms": {Mean: 2 * time.Millisecond, Exponential: true},
	} {
		got, err := ParseWork(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		require.Equal(t, text, got.String())
	}
	for _, text := range []string{"", "2", "-2ms", "1ms-5ms", "exp:", "exp:x", "2h", "exp:2h", "exp:exp:1ms"} {
		_, err := ParseWork(text)
		require.Error(t, err, text)
	}
}

func TestWorkHasItsMean(t *testing.T) {
	var sum time.Duration
	const n = 100_000
	for range n {
		sum += Work{Mean: 2 * time.Millisecond, Exponential: true}.next()
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
		w := newWorker(t.Context(), &Job{Work: Work{Mean: work}}, clock, false)
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

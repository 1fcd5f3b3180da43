package load

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
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

func TestParseShare(t *testing.T) {
	for text, want := range map[string]Share{
		"1%": 10_000, "0.25%": 2_500, "100%": Whole, "33.3333%": 333_333, "0%": 0, "0.0001%": 1, "50 %": 500_000,
	} {
		got, err := ParseShare(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseShare(got.String())
		require.NoError(t, err, got.String())
		require.Equal(t, got, again)
	}
	require.Equal(t, "0.25%", Share(2500).String())
	require.Equal(t, "100%", Whole.String())
	for _, text := range []string{"", "1", "-1%", "101%", "100.0001%", "0.00001%", "1%%", "a%", "%", "1k%"} {
		_, err := ParseShare(text)
		require.ErrorContains(t, err, "must be a percentage", text)
	}
}

// Of the first n deliveries exactly the share, rounded down, fail: for each n.
func TestFailIsExact(t *testing.T) {
	for _, share := range []Share{10_000, Whole, 333_333, 17_500, 1, 999_999} {
		f := NewFail(share, driver.Reject)
		failed := uint64(0)
		for n := uint64(1); n <= 5000; n++ {
			if v := f.next(); v != driver.Accept {
				require.Equal(t, driver.Reject, v)
				failed++
			}
			require.Equal(t, n*uint64(share)/1_000_000, failed, "%v of %d", share, n)
		}
	}
	require.Nil(t, NewFail(0, driver.Release))
}

func TestSleeperIsExactAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		w := NewSleeper(ctx, clock, false)
		defer w.Close()
		for _, at := range []time.Duration{0, time.Nanosecond, time.Millisecond, time.Millisecond, time.Minute} {
			require.True(t, w.Until(at))
			require.Equal(t, at, clock.Now())
		}
		require.False(t, w.Until(2*time.Hour))
		require.Equal(t, time.Hour, clock.Now())
		require.False(t, w.Until(2*time.Hour), "and again")
	})
}

// The kernel's timer knows no fake clock. Two facts can be tested without relying on speed: it never wakes early, and
// the end of the context wakes it.
func TestSleeperOnRealClock(t *testing.T) {
	for _, precise := range []bool{false, true} {
		t.Run(fmt.Sprintf("precise %t", precise), func(t *testing.T) {
			clock := NewClock()
			ctx, cancel := context.WithCancel(t.Context())
			w := NewSleeper(ctx, clock, precise)
			defer w.Close()
			for i := range 20 {
				at := time.Duration(i) * 150 * time.Microsecond
				require.True(t, w.Until(at))
				require.GreaterOrEqual(t, clock.Now(), at)
			}
			woken := make(chan bool)
			go func() { woken <- w.Until(clock.Now() + time.Hour) }()
			cancel()
			require.False(t, <-woken)
			require.False(t, w.Until(clock.Now()+time.Hour), "and again")
		})
	}
}

func TestSleepersAllocateNothing(t *testing.T) {
	for _, precise := range []bool{false, true} {
		clock := NewClock()
		w := NewSleeper(t.Context(), clock, precise)
		require.Zero(t, testing.AllocsPerRun(50, func() { w.Until(clock.Now() + 10*time.Microsecond) }))
		w.Close()
	}
}

package load

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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

package driver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMeter: the sum of the waits, with the one in progress.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMeter()
		require.Equal(t, Wait{}, m.Wait())
		for n := range uint64(3) {
			<-time.After(time.Second) // not a wait
			m.Begin()
			<-time.After(2 * time.Minute)
			before := time.Duration(n) * time.Hour //nolint:gosec // small
			require.Equal(t, Wait{Times: n + 1, Time: before + 2*time.Minute}, m.Wait())
			<-time.After(time.Hour - 2*time.Minute)
			m.End()
			require.Equal(t, Wait{Times: n + 1, Time: before + time.Hour}, m.Wait())
		}
	})
}

// TestMeterCountsOnce: a reader at any moment, also while a wait ends, sees no more than the time that has passed.
func TestMeterCountsOnce(t *testing.T) {
	t.Parallel()
	for range 2000 {
		began := time.Now()
		m, done := NewMeter(), make(chan struct{})
		go func() {
			defer close(done)
			m.Begin()
			for time.Since(began) < 50*time.Microsecond {
			}
			m.End()
		}()
		for over := false; !over; {
			select {
			case <-done:
				over = true
			default:
			}
			require.LessOrEqual(t, m.Wait().Time, time.Since(began))
		}
	}
}

package stats_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/clocktest"
	"github.com/perfmq/perfmq/internal/stats"
)

// TestSetClock: setting the wall clock shifts no time of a run. The run reports the step, also after the last
// interval.
func TestSetClock(t *testing.T) {
	start := time.Now()
	c := collectorOf(start, stats.NewProducerRecorder(true, nil), stats.NewConsumerRecorder())
	at := func(elapsed, set time.Duration) time.Time { return clocktest.Set(t, start.Add(elapsed), set) }

	s := c.Collect(stats.Measure, at(time.Second, 0), false)
	require.True(t, start.Equal(s.From.Round(0)) || start.Equal(s.From))
	for i := 2; i <= 4; i++ {
		s = c.Collect(stats.Measure, at(time.Duration(i)*time.Second, -time.Hour), i == 4)
		require.Equal(t, time.Second, s.To.Sub(s.From))
		require.Equal(t, time.Duration(i)*time.Second, s.To.Round(0).Sub(start.Round(0)), "by the wall clock at the start")
		require.Equal(t, time.Duration(i-1)*time.Second, s.From.Round(0).Sub(start.Round(0)))
	}
	low := c.SumRun().Minimum
	require.Equal(t, start.Add(time.Second).UnixMicro(), low.Completed.Time)

	h := c.Tester(at(4*time.Second, -time.Hour))
	require.Equal(t, [2]int64{0, 3_600_000_000}, [2]int64{h.ClockForward, h.ClockBackward})
	h = c.Tester(at(5*time.Second, -time.Hour+2*time.Second))
	require.Equal(t, [2]int64{2_000_000, 3_600_000_000}, [2]int64{h.ClockForward, h.ClockBackward})
	require.EqualValues(t, 4_000_000, h.Wall, "all else is of the intervals")
}

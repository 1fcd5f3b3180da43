package stats_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// The path of a message allocates only once, when the first time of its kind comes; also right after a snapshot.
func TestAgesAllocateOnce(t *testing.T) {
	start := time.Now()
	r := stats.NewConsumerRecorder()
	c := collectorOf(start, nil, r)
	r.Ages(stats.Measure, 20, 10, 15)
	for range 3 {
		start = start.Add(time.Second)
		c.Collect(stats.Measure, start, false)
		require.Zero(t, testing.AllocsPerRun(5, func() { r.Ages(stats.Measure, 20, 10, 15) }))
	}
}

func TestMinimum(t *testing.T) {
	start := time.Now()
	p, k := stats.NewProducerRecorder(false, nil), stats.NewConsumerRecorder()
	c := collectorOf(start, p, k)
	now := start
	second := func(phase stats.Phase, length time.Duration, completed, received int) {
		for range completed {
			p.Begun(stats.Measure)
			p.Handed(stats.Measure, 0)
			done(p, driver.Outcome{}, 0, 0)
		}
		for range received {
			receive(k, 0, false)
		}
		now = now.Add(length)
		c.Collect(phase, now, phase == stats.Drain)
	}
	lowest := func() stats.Peaks { return c.SumRun().Minimum }
	known := func() bool { m := lowest(); return m.Completed.Known() }

	second(stats.Warmup, time.Second, 0, 0) // left out, though lowest
	second(stats.Measure, 500*time.Millisecond, 0, 0)
	second(stats.Measure, time.Second, 100, 90)
	second(stats.Measure, 1100*time.Millisecond, 55, 110) // 50 and 100 per second: it is the rate that counts
	require.False(t, known(), "two seconds say nothing")
	second(stats.Measure, 750*time.Millisecond, 75, 15) // the cut before was late
	second(stats.Measure, 699*time.Millisecond, 0, 5)   // counts with the one before
	second(stats.Drain, time.Second, 0, 0)

	require.True(t, known())
	m := lowest()
	require.Equal(t, 3, m.Completed.Seconds)
	require.Equal(t, 2, m.Received.Seconds, "the second with the first message is not a whole one")
	require.InDelta(t, 50, m.Completed.PerSecond, 1e-9)
	require.EqualValues(t, 3_600_000, m.Completed.Elapsed)
	require.Equal(t, start.Add(3600*time.Millisecond).UnixMicro(), m.Completed.Time)
	require.InDelta(t, 20/1.449, m.Received.PerSecond, 1e-9)
	require.EqualValues(t, 5_049_000, m.Received.Elapsed)

	second(stats.Measure, time.Second, 0, 30)
	second(stats.Measure, time.Second, 0, 30)
	m = lowest()
	require.Zero(t, m.Completed.PerSecond, "a stall")
	require.Equal(t, (now.Sub(start) - time.Second).Microseconds(), m.Completed.Elapsed, "the first such second")
	require.InDelta(t, 20/1.449, m.Received.PerSecond, 1e-9)
}

func TestUnsent(t *testing.T) {
	start := time.Now()
	p := stats.NewProducerRecorder(false, nil)
	c := collectorOf(start, p, nil)
	refused := errors.New("no connection")
	p.Begun(stats.Measure)
	p.Handed(stats.Measure, 0)
	p.Unsent(stats.Measure, driver.ClassConnect, refused)
	p.Begun(stats.Measure)
	p.Handed(stats.Measure, 0)
	done(p, driver.Outcome{State: driver.Failed, Class: driver.ClassTimeout}, 0, 0)
	n := c.Collect(stats.Measure, start.Add(time.Second), false).Total
	require.EqualValues(t, 2, n.Get(result.Failed))
	require.EqualValues(t, 1, n.Get(result.Unsent))
	require.EqualValues(t, 1, n.Producers.Failures["failed"]["connect"])
	require.Zero(t, n.InFlight())
	require.Same(t, refused, p.FirstError(driver.ClassConnect))
}

package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

func TestWarmup(t *testing.T) {
	for _, warmup := range []time.Duration{2 * time.Second, 2500 * time.Millisecond, time.Millisecond} {
		inBubble(t, warmup.String(), func(t *testing.T) {
			s, rep := run(t, newPlan(mem.New().Factory(), func(p *flat) {
				p.Rate, p.Duration, p.Warmup = rate("1000"), 5*time.Second, warmup
			}), nil)
			require.True(t, s.Outcome.Success, s.Problems())
			require.InDelta(t, 5000, s.Total.Get(result.Sent), 1, "the duration includes the warm-up")
			require.InDelta(t, 5000-warmup.Milliseconds(), s.Latencies[result.Ack].Count, 2)
			require.InDelta(t, 5000-warmup.Milliseconds(), s.Latencies[result.Transfer].Count, 2)
			var warm time.Duration
			for _, snap := range rep.snapshots {
				if snap.Phase == result.Warmup {
					warm += snap.To.Sub(snap.From)
				}
			}
			require.Equal(t, warmup, warm)
			require.InDelta(t, 5*time.Second, lasted(s), float64(5*time.Millisecond))
		})
	}
}

// TestInterruptedInTheDrain: an end that the user asks for after the load is one, too, as the exit status says.
func TestInterruptedInTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.DeliveryLatency = 3 * time.Second })
		stop := make(chan struct{})
		time.AfterFunc(1500*time.Millisecond, func() { close(stop) })
		p := newPlan(b.Factory(), func(p *flat) { p.Rate, p.Duration, p.MaxPending = rate("10"), time.Second, 10 })
		s, _ := run(t, p, stop)
		require.Equal(t, "duration reached", s.Outcome.Reason)
		require.True(t, s.Outcome.Success && s.Outcome.Interrupted)
		require.EqualValues(t, 10, s.Total.Get(result.Received), "the drain goes on")
	})
}

// One block a second: the tick at the end of the duration and the end of the load are one cut.
func TestNoEmptyIntervals(t *testing.T) {
	for _, role := range []plan.Role{plan.Client, plan.Producer, plan.Consumer} {
		inBubble(t, string(role), func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Latency = 1500 * time.Microsecond })
			_, rep := run(t, newPlan(b.Factory(), func(p *flat) {
				p.Role, p.Rate, p.Duration, p.MaxPending = role, rate("1000"), 3*time.Second, 100
			}), nil)
			require.LessOrEqual(t, len(rep.snapshots), 4)
			for i, snap := range rep.snapshots[:3] {
				require.Equal(t, time.Duration(i+1)*time.Second, us(snap.Elapsed))
				require.Equal(t, result.Measure, snap.Phase)
			}
		})
	}
}

func TestDrainPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.DeliveryLatency = 2500 * time.Millisecond })
		s, rep := run(t, newPlan(b.Factory(), func(p *flat) { p.Rate, p.Duration = rate("100"), 3*time.Second }), nil)
		require.True(t, s.Outcome.Success, s.Problems())
		require.InDelta(t, 5500*time.Millisecond, lasted(s), float64(20*time.Millisecond))
		var drained uint64
		for _, snap := range rep.snapshots {
			if snap.Phase == result.Drain {
				require.LessOrEqual(t, snap.Get(result.Sent), uint64(1), "at most the one that was leaving at that moment")
				drained += snap.Get(result.Received)
			}
		}
		require.InDelta(t, 250, drained, 2)
		require.Equal(t, s.Total.Get(result.Sent), s.Total.Get(result.Received))
	})
}

func TestReporters(t *testing.T) {
	plan5s := func() *flat {
		return newPlan(mem.New().Factory(), func(p *flat) { p.Rate, p.Duration = rate("1000"), 5*time.Second })
	}
	inBubble(t, "one that fails is reported but stops nothing", func(t *testing.T) {
		rep := &recorder{interval: func(*stats.Snapshot) error { return errFull }}
		s, err := carryOut(t.Context(), nil, plan5s(), rep)
		require.ErrorIs(t, err, errFull)
		require.InDelta(t, 5000, s.Total.Get(result.Sent), 1)
		require.True(t, s.Outcome.Success)
		require.NotNil(t, rep.summary)
	})
	inBubble(t, "one that cannot start ends the run before it began", func(t *testing.T) {
		b := mem.New()
		_, err := carryOut(t.Context(), nil, newPlan(b.Factory(), nil), &recorder{start: errFull})
		require.ErrorIs(t, err, errFull)
		require.Zero(t, b.Stats().Connections)
		require.Zero(t, b.Stats().Arrived)
	})
	inBubble(t, "a slow one moves no cut", func(t *testing.T) {
		p := plan5s()
		rep := &recorder{interval: func(*stats.Snapshot) error { pass(1700 * time.Millisecond); return nil }}
		s, err := carryOut(t.Context(), nil, p, rep)
		require.NoError(t, err)
		check(t, p, s, rep)
		require.InDelta(t, 5*time.Second, lasted(s), float64(5*time.Millisecond))
		for i, snap := range rep.snapshots[:5] {
			require.Equal(t, time.Duration(i+1)*time.Second, us(snap.Elapsed))
		}
	})
	inBubble(t, "one that is slow for minutes gets longer intervals, and all of the counts", func(t *testing.T) {
		p := plan5s()
		p.Duration, p.Rate = 300*time.Second, rate("10")
		rep := new(recorder)
		rep.interval = func(s *stats.Snapshot) error {
			if s.Elapsed == 1_000_000 {
				pass(200 * time.Second)
			}
			return nil
		}
		s, err := carryOut(t.Context(), nil, p, rep)
		require.NoError(t, err)
		check(t, p, s, rep)
		require.InDelta(t, 3000, s.Total.Get(result.Sent), 1)
		require.Less(t, len(rep.snapshots), 200)
	})
}

package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// Consumers that fail on purpose: of all deliveries the exact share, whichever consumer gets them. Messages given back
// come again and are received once; rejected messages are received, counted, and not lost.
func TestConsumerFail(t *testing.T) {
	const sent = 2000
	for name, c := range map[string]struct {
		share              load.Share
		as                 driver.Verdict
		released, rejected uint64
		edit               func(*flat)
	}{
		// Of n deliveries n*share, rounded down, are given back, and the others are 2000.
		"release 1%":                  {load.Whole / 100, driver.Release, 20, 0, func(*flat) {}},
		"release half":                {load.Whole / 2, driver.Release, 1999, 0, func(*flat) {}},
		"release 1%, without a check": {load.Whole / 100, driver.Release, 20, 0, func(p *flat) { p.Verify = false }},
		"reject 0.25%, three":         {load.Whole / 400, driver.Reject, 0, 5, func(p *flat) { p.Consumers = 3 }},
		"reject all":                  {load.Whole, driver.Reject, 0, sent, func(*flat) {}},
		"reject 1% in the warm-up":    {load.Whole / 100, driver.Reject, 0, 20, func(p *flat) { p.Rate, p.Warmup, p.Duration = rate("1000"), time.Second, 4*time.Second }},
	} {
		inBubble(t, name, func(t *testing.T) {
			b := broker(t, nil)
			s, _ := run(t, newPlan(b.Factory(), verified, func(p *flat) {
				p.Count, p.MaxPending, p.StallThreshold = sent, 100, time.Second
				p.ConsumerFail, p.Failing = c.share, c.as
				c.edit(p)
			}), nil)
			require.True(t, s.Outcome.Success, s.Problems())
			require.EqualValues(t, sent, s.Total.Get(result.Received))
			require.Equal(t, c.released, s.Total.Get(result.ConsumerReleased))
			require.Equal(t, c.rejected, s.Total.Get(result.ConsumerRejected))
			require.Zero(t, *s.Missing)
			if v := s.Verification; v != nil {
				require.EqualValues(t, sent, v.Total.Once)
				require.Zero(t, v.Total.Lost+v.Total.Left+v.Total.Duplicates+v.Total.Damaged)
			}
			stats := b.Stats()
			require.EqualValues(t, sent+c.released, stats.Delivered, "what the broker has delivered")
			require.EqualValues(t, c.released, stats.Redelivered)
			require.EqualValues(t, c.rejected, stats.Refused)
			require.EqualValues(t, sent-c.rejected, stats.Acknowledged)
			require.Empty(t, s.Stalls)
		})
	}
}

// Groups and steps have their own shares with exact counts. Another share keeps the consumers, another verdict reopens
// them.
func TestConsumerFailOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mem.New()
		s := newScenario(b.Factory(), true)
		failing := func(percent load.Share, as driver.Verdict) func(*plan.Group) {
			return func(g *plan.Group) { g.ConsumerFail, g.Failing = percent*load.Whole/100, as }
		}
		s.step("whole", drainedStep, s.senders("senders", sending(1000)), s.readers("readers", nil))
		s.step("ten", drainedStep, s.senders("senders", sending(900)), s.readers("readers", failing(10, driver.Release)))
		s.step("fifty", drainedStep, s.senders("senders", sending(1000)), s.readers("readers", failing(50, driver.Release)))
		s.step("rejecting", drainedStep, s.senders("senders", sending(1000)), s.readers("readers", failing(5, driver.Reject)))
		s.plan.Allow.Disorder = true
		s.plan.Thresholds = demands(t, "consumer.released == 1098", "consumer.rejected == 50", "group.readers.consumer.rejected == 50")
		sum := s.run(t, nil)
		require.True(t, sum.Outcome.Success, sum.Problems())
		for _, outcome := range sum.Thresholds {
			require.True(t, outcome.Kept, outcome)
		}
		for i, want := range []struct{ received, released, rejected uint64 }{{1000, 0, 0}, {900, 99, 0}, {1000, 999, 0}, {1000, 0, 50}} {
			got := sum.Ended[i].Total.Values()
			require.Equal(t, want.received, got[result.Received], i)
			require.Equal(t, want.released, got[result.ConsumerReleased], i)
			require.Equal(t, want.rejected, got[result.ConsumerRejected], i)
		}
		require.EqualValues(t, 3900, sum.Verification.Total.Once)
		require.EqualValues(t, 50, b.Stats().Refused)
		require.EqualValues(t, 1098, b.Stats().Redelivered)
	})
}

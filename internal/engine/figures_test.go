package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

// TestOffered: the messages due and sent in the measured part, at a broker with a known ack time.
func TestOffered(t *testing.T) {
	for _, tt := range []struct {
		name    string
		latency time.Duration
		edit    func(*flat)
		due     uint64
		missed  float64 // share
		within  float64
		offered float64 // per second
	}{
		{name: "reached", due: 8000, offered: 1000, within: 0},
		{name: "seven producers", edit: func(p *flat) { p.Producers = 7 }, due: 8000, offered: 1000},
		{name: "a message every four seconds", edit: func(p *flat) { p.Rate = rate("0.25") }, due: 2, offered: 0.25},
		{name: "less than a message in the load", edit: func(p *flat) { p.Rate, p.Warmup = rate("0.02"), 0 }, due: 1, offered: 0.02},
		{name: "no message after the warm-up", edit: func(p *flat) { p.Rate = rate("0.02") }, due: 0, offered: 0.02},
		{name: "no whole number of messages", edit: func(p *flat) { p.Rate, p.Duration = rate("3.5"), 3*time.Second }, due: 4, offered: 3.5},
		{name: "a low rate of three", edit: func(p *flat) { p.Rate, p.Producers = rate("0.7"), 3 }, due: 5, offered: 0.7},
		{name: "a ramp", edit: func(p *flat) { p.Rate = rate("ramp 0 to 1 for 10s") }, due: 4, offered: 0.6},
		{
			name: "a tenth", latency: 10 * time.Millisecond, edit: func(p *flat) { p.MaxPending = 1 },
			due: 8000, missed: 1, offered: 1000, // the messages sent were due in the warm-up
		},
		{
			name: "no warm-up", latency: 10 * time.Millisecond, edit: func(p *flat) { p.MaxPending, p.Warmup = 1, 0 },
			due: 10000, missed: 0.9, within: 0.001, offered: 1000,
		},
		{
			name: "a count at half the rate", latency: 2 * time.Millisecond,
			edit: func(p *flat) { p.MaxPending, p.Warmup, p.Count = 1, 0, 2000 },
			due:  4000, missed: 0.5, within: 0.005, offered: 1000,
		},
		{name: "a count in time", latency: 2 * time.Millisecond, edit: func(p *flat) { p.Count = 5000 }, due: 3000, offered: 1000},
		{
			name: "segments", edit: func(p *flat) { p.Rate = rate("1000 for 4s, pause 2s, 500 for 2s") },
			due: 2000 + 1000, offered: 500,
		},
		{name: "no rate", edit: func(p *flat) { p.Rate, p.MaxPending = plan.Rate{}, 3 }, latency: time.Millisecond},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Latency = tt.latency })
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
				p.Rate, p.Duration, p.Warmup, p.MaxPending = rate("1000"), 10*time.Second, 2*time.Second, 1000
			}, tt.edit), nil)
			require.InDelta(t, float64(tt.due), float64(s.Offered.Due), tt.within*float64(tt.due))
			require.InDelta(t, tt.missed, s.Offered.Missed(), tt.within)
			require.InDelta(t, tt.offered, s.Offered.Rate, tt.within*tt.offered)
			require.Equal(t, tt.offered > 0, s.Offered.Known())
		})
	}
}

// TestNumbersOfTheMeasuredPart: bytes, averages, and the highest rate of a second, of a load of two rates.
func TestNumbersOfTheMeasuredPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Reject = 10 })
		s, rep := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Rate, p.Duration, p.Warmup, p.MaxPending = rate("1000 for 4s, 3000 for 1s, 500"), 10*time.Second, 2*time.Second, 1000
			p.Producers, p.Consumers = 2, 3
		}), nil)
		const sent = 4000 + 3000 + 5*500
		require.EqualValues(t, sent, s.Total.Get(result.Sent))
		require.EqualValues(t, sent*9/10, s.Total.Get(result.Completed))
		require.EqualValues(t, sent*9/10*64, s.Total.Get(result.CompletedBytes), "what was rejected is no payload")
		require.EqualValues(t, sent*9/10*64, s.Total.Get(result.ReceivedBytes))
		require.InDelta(t, 8*time.Second, s.Average.Span, float64(10*time.Millisecond))
		require.InDelta(t, sent-2000, float64(s.Average.Sent), 1, "the message due at the cut is in one of the two intervals")
		require.InDelta(t, float64(sent-2000)*0.9*64, float64(s.Average.CompletedBytes), 64)
		require.InDelta(t, 2700, s.Maximum.Completed.PerSecond, 5)
		require.InDelta(t, 5_000_000, s.Maximum.Completed.Elapsed, 10_000)
		require.InDelta(t, 450, s.Minimum.Completed.PerSecond, 5)
		var bytes uint64
		for _, snap := range rep.snapshots {
			bytes += snap.Get(result.CompletedBytes)
		}
		require.Equal(t, s.Total.Get(result.CompletedBytes), bytes)
	})
}

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestClockBehind: 300 messages that come 50 ms after they were sent to a consumer whose clock is behind. Transfer times
// below zero are counted and in no distribution, and a threshold on the transfer time is not measured by them.
func TestClockBehind(t *testing.T) {
	for name, tt := range map[string]struct {
		behind   time.Duration
		negative uint64
		transfer int64 // microseconds
	}{
		"in time":            {0, 0, 50_000},
		"less than it takes": {20 * time.Millisecond, 0, 30_000},
		"5 seconds":          {5 * time.Second, 300, 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.DeliveryLatency = 50 * time.Millisecond })
			opened, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				<-opened
				run(t, newPlan(b.Factory(), func(p *flat) {
					p.Role, p.Rate, p.Count, p.MaxPending = plan.Producer, rate("100.3"), 300, 100
				}), nil)
			}()
			p := newPlan(b.Factory(), func(p *flat) {
				p.Role, p.Count, p.ClockShift = plan.Consumer, 300, -tt.behind
				p.Plan.Thresholds = demands(t, "transfer.p99 < 60ms", "transfer.mean < 60ms")
			})
			rep := &recorder{}
			close(opened)
			s, err := carryOut(t.Context(), nil, p, rep)
			require.NoError(t, err)
			<-ended
			require.EqualValues(t, 300, s.Total[result.Received])
			require.Equal(t, tt.negative, s.Total[result.NegativeTransfers])
			for _, o := range s.Thresholds {
				require.Equal(t, tt.negative == 0, o.Known, o.String())
				require.Equal(t, tt.negative == 0, o.Kept, o.String())
			}
			if tt.negative > 0 {
				require.Zero(t, s.Latencies[result.Transfer].Count)
				require.Contains(t, s.Warnings(),
					"transfer times below zero, left out because the clocks of producer and consumer differ: 300 of 300")
				return
			}
			require.EqualValues(t, 300, s.Latencies[result.Transfer].Count)
			require.Equal(t, tt.transfer, s.Latencies[result.Transfer].Max)
		})
	}
}

// TestLeftOut: where times below zero are more than 1% of the messages, thresholds on transfer times and lateness fail as
// not measured.
func TestLeftOut(t *testing.T) {
	behind := func(d *driver.Delivery) {
		d.Time += 5_000_000
		d.Born, d.Stored = d.Time, d.Time+1
	}
	for name, tt := range map[string]struct {
		every    int
		left     uint64
		measured bool
	}{
		"no message":  {0, 0, true},
		"1 of 100":    {100, 4, true},
		"1 of 50":     {50, 8, false},
		"all of them": {1, 400, false},
	} {
		inBubble(t, name, func(t *testing.T) {
			f := mem.New().Factory()
			if tt.every > 0 {
				seen := 0
				f = delivering(f, func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
					if seen++; seen%tt.every == 0 {
						behind(d)
					}
					deliver(d)
				})
			}
			s, _ := run(t, newPlan(f, func(p *flat) {
				p.Rate, p.Duration, p.StallThreshold = rate("100"), 4*time.Second, 3*time.Second
				p.Delay = time.Second
				p.Plan.Thresholds = demands(t, "transfer.p99 < 1010ms", "transfer.max < 1010ms", "lateness.p99 < 10ms", "lateness.mean < 10ms")
			}), nil)
			require.True(t, s.Success, s.Problems())
			require.Equal(t, tt.left, s.Total[result.NegativeTransfers])
			require.Equal(t, tt.left, s.Total[result.Early])
			require.EqualValues(t, 400-tt.left, s.Latencies[result.Transfer].Count)
			if tt.left < 400 {
				require.EqualValues(t, 400-tt.left, s.Latencies[result.Lateness].Count)
			}
			require.Equal(t, 2*tt.left, s.Total[result.NegativeAges])
			require.Nil(t, s.Latencies[result.B2C], "no message with an age has one that is known")
			for _, o := range s.Thresholds {
				require.Equal(t, tt.measured, o.Kept, o.String())
				require.Equal(t, tt.measured, !strings.HasSuffix(o.String(), "NOT KEPT, not measured"), o.String())
			}
			said := strings.Contains(strings.Join(s.Warnings(), "\n"), "transfer times below zero, left out")
			require.Equal(t, tt.left > 0, said, s.Warnings())
			require.Empty(t, s.Stalls.List)
		})
	}
}

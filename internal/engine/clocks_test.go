package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/plan"
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
				require.EqualValues(t, 300, s.Total.Received)
				require.Equal(t, tt.negative, s.Total.NegativeTransfers)
				for _, o := range s.Thresholds {
					require.Equal(t, tt.negative == 0, o.Known, o.String())
					require.Equal(t, tt.negative == 0, o.Kept, o.String())
				}
				if tt.negative > 0 {
					require.Zero(t, s.Latencies.Transfer.Count())
					require.Contains(t, s.Warnings,
						"transfer times below zero, left out because the clocks of producer and consumer differ: 300 of 300")
					return
				}
				require.EqualValues(t, 300, s.Latencies.Transfer.Count())
				require.Equal(t, tt.transfer, s.Latencies.Transfer.Max())
			})
		})
	}
}

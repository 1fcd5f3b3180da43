package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// A stall of the broker of 1 s in a run of 5 s at 1000 msg/s holds up a fifth of the messages by 0 to 1 s: a tenth of
// all by more than half a second. With few messages in flight that is send delay, and ack stays low; with many it is
// ack. The response time, from the intended send, is the same.
func TestStallShows(t *testing.T) {
	for _, pending := range []int{1, 10, 0} {
		inBubble(t, fmt.Sprint(pending), func(t *testing.T) {
			b := broker(t, func(o *mem.Options) {
				o.StallAfter, o.StallFor = 2*time.Second, time.Second
				o.Latency = 10 * time.Microsecond
			})
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
				p.Rate, p.Duration, p.MaxPending = rate("1000"), 5*time.Second, pending
			}), nil)
			require.True(t, s.Success, s.Problems())
			require.Zero(t, s.Total[result.LateSends], "a stalled broker is not a late tester")
			require.InDelta(t, 5000, s.Total[result.Sent], 1)
			l := s.Latencies
			require.InDelta(t, 500_000, l[result.Response].Percentile(90), 15_000)
			require.InDelta(t, 1_000_000, l[result.Response].Max, 15_000)
			if pending == 0 {
				require.Zero(t, l[result.Delay].Max, "nothing holds the sends up")
				require.InDelta(t, 500_000, l[result.Ack].Percentile(90), 15_000)
				require.Zero(t, s.Total[result.Blocked])
			} else {
				require.InDelta(t, 500_000, l[result.Delay].Percentile(90), 15_000)
				require.Less(t, l[result.Ack].Percentile(99), int64(100), "ack stays low")
			}
		})
	}
}

func TestFaultsAreCountedExactly(t *testing.T) {
	const count = 1000
	tests := []struct {
		name     string
		options  func(*mem.Options)
		want     stats.Counters
		class    driver.Class
		missing  uint64
		problem  string // in the list of problems; none if empty
		warning  string
		drainOut bool // the drain runs into its deadline
	}{
		{name: "no fault", options: func(*mem.Options) {}, want: stats.Counters{result.Completed: count, result.Received: count}},
		{
			name: "10 lost are 10 not received", options: func(o *mem.Options) { o.Lose = 100 },
			want: stats.Counters{result.Completed: count, result.Received: 990}, missing: 10,
			problem: "after 3s: 10 of 1000", drainOut: true,
		},
		{
			name: "rejected", options: func(o *mem.Options) { o.Reject = 100 },
			want: stats.Counters{result.Completed: 990, result.Received: 990, result.Rejected: 10}, class: driver.ClassOther,
			problem: "rejected by the broker: 10",
		},
		{
			name: "released", options: func(o *mem.Options) { o.Release = 50 },
			want: stats.Counters{result.Completed: 980, result.Received: 980, result.Released: 20}, class: driver.ClassOther,
			problem: "given back by the broker: 20",
		},
		{
			name: "modified", options: func(o *mem.Options) { o.Modify = 25 },
			want: stats.Counters{result.Completed: 960, result.Received: 960, result.Modified: 40}, class: driver.ClassOther,
			problem: "given back by the broker as modified: 40",
		},
		{
			name: "failed", options: func(o *mem.Options) { o.Fail = 10 },
			want: stats.Counters{result.Completed: 900, result.Received: 900, result.Failed: 100}, class: driver.ClassOther,
			problem: "messages failed: 100",
		},
		{
			name: "unknown", options: func(o *mem.Options) { o.Withhold = 200 },
			want: stats.Counters{result.Completed: 995, result.Received: 1000, result.Unconfirmed: 5}, class: driver.ClassTimeout,
			problem: "(the broker may have them or not): 5", drainOut: true,
		},
		{
			name: "duplicates", options: func(o *mem.Options) { o.Duplicate = 100 },
			want:    stats.Counters{result.Completed: count, result.Received: 1010, result.Redelivered: 10},
			warning: "messages that the broker delivered again, each of which may hide a lost one: 10",
		},
		{
			name: "reordered", options: func(o *mem.Options) { o.Reorder = 10 },
			want: stats.Counters{result.Completed: count, result.Received: count},
		},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, tt.options)
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) { p.Count, p.MaxPending = count, 100 }), nil)
			n := s.Total
			tt.want[result.Sent] = count
			tt.want[result.CompletedBytes], tt.want[result.ReceivedBytes] = 64*tt.want[result.Completed], 64*tt.want[result.Received]
			tt.want[result.Blocked] = n[result.Blocked]
			copy(tt.want[result.NumCounters:], n[result.NumCounters:])
			require.Equal(t, tt.want, n)
			bad := n[result.Rejected] + n[result.Released] + n[result.Modified] + n[result.Failed] + n[result.Unconfirmed]
			require.Equal(t, bad, n.Class(tt.class))
			require.True(t, s.ExpectedKnown)
			require.Equal(t, n[result.Completed], s.Expected)
			require.Equal(t, tt.missing, s.Missing)
			require.Equal(t, tt.problem == "", s.Success, s.Problems())
			require.Contains(t, strings.Join(s.Problems(), "\n"), tt.problem)
			require.Contains(t, strings.Join(s.Warnings(), "\n"), tt.warning)
			require.Equal(t, "message count reached", s.Reason)
			if tt.drainOut {
				require.InDelta(t, drainTimeout, s.End.Sub(s.Start), float64(50*time.Millisecond))
			} else { // a duplicate may stand in for a late message: a quiet second decides
				require.Less(t, s.End.Sub(s.Start), 1100*time.Millisecond)
			}
			// The broker's own count.
			truth := b.Stats()
			require.Equal(t, truth.Arrived, n[result.Sent])
			require.Equal(t, truth.Accepted, n[result.Completed])
			require.Equal(t, truth.Delivered, n[result.Received])
			require.Zero(t, truth.Producers+truth.Consumers+truth.Connections)
		})
	}
}

func TestMessageCountOverProducers(t *testing.T) {
	count := uint64(300_003)
	if testing.Short() {
		count = 10_003
	}
	b := mem.New()
	s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
		verified(p)
		p.Count, p.Producers, p.Consumers, p.MaxPending = count, 7, 2, 100
		p.DrainTimeout = time.Hour // on the real clock, of a machine that may be busy
	}), nil)
	require.True(t, s.Success, s.Problems())
	require.Equal(t, count, s.Total[result.Sent])
	require.Equal(t, count, s.Total[result.Completed])
	require.Equal(t, count, b.Stats().Arrived)
	require.Equal(t, result.Verified{Expected: count, Received: count, Once: count}, s.Verification.Total)
}

func TestRateOverProducers(t *testing.T) {
	for _, tt := range []struct {
		rate         string
		producers    int
		destinations int
		want         uint64
	}{{"10", 7, 1, 600}, {"10", 3, 1, 600}, {"0.5", 3, 1, 30}, {"33.333", 7, 1, 2000}, {"10", 3, 10, 600}} {
		inBubble(t, fmt.Sprintf("%s over %d on %d", tt.rate, tt.producers, tt.destinations), func(t *testing.T) {
			s, rep := run(t, newPlan(mem.New().Factory(), func(p *flat) {
				p.Rate, p.Producers, p.Duration = rate(tt.rate), tt.producers, time.Minute-time.Nanosecond
				p.Destinations = nil
				for i := range tt.destinations {
					p.Destinations = append(p.Destinations, driver.Destination{Name: fmt.Sprint("TEST", i)})
				}
			}), nil)
			require.Equal(t, tt.want, s.Total[result.Sent])
			require.Zero(t, s.Latencies[result.Delay].Max)
			require.Zero(t, s.Total[result.Blocked])
			if tt.rate == "10" {
				for _, snap := range rep.snapshots[1:59] {
					require.InDelta(t, 10, snap.Delta[result.Sent], 1, "each second: one message is due at the very cut")
				}
			}
		})
	}
}

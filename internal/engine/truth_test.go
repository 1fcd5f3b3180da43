package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

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
			problem: "which the broker may have or not: 5", drainOut: true,
		},
		{
			name: "duplicates", options: func(o *mem.Options) { o.Duplicate = 100 },
			want:    stats.Counters{result.Completed: count, result.Received: 1010, result.Redelivered: 10},
			warning: "redelivered messages, each of which may hide a lost one: 10",
		},
		{
			name: "reordered", options: func(o *mem.Options) { o.Reorder = 30 },
			want: stats.Counters{result.Completed: count, result.Received: count},
		},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, tt.options)
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) { p.Count, p.MaxPending = count, 100 }), nil)
			n := s.Total.Values()
			tt.want[result.Sent] = count
			tt.want[result.CompletedBytes], tt.want[result.ReceivedBytes] = 64*tt.want[result.Completed], 64*tt.want[result.Received]
			tt.want[result.Blocked] = n[result.Blocked]
			require.Equal(t, tt.want[:result.NumCounters], n[:])
			bad := n[result.Rejected] + n[result.Released] + n[result.Modified] + n[result.Failed] + n[result.Unconfirmed]
			require.Equal(t, bad, s.Total.OfClass(tt.class.String()))
			require.Equal(t, n[result.Completed], *s.Expected)
			require.Equal(t, tt.missing, *s.Missing)
			require.Equal(t, tt.problem == "", s.Outcome.Success, s.Problems())
			require.Contains(t, strings.Join(s.Problems(), "\n"), tt.problem)
			require.Contains(t, strings.Join(s.Warnings(), "\n"), tt.warning)
			require.Equal(t, "message count reached", s.Outcome.Reason)
			if tt.drainOut {
				require.InDelta(t, drainTimeout, lasted(s), float64(50*time.Millisecond))
			} else { // a duplicate may stand in for a late message: a quiet second decides
				require.Less(t, lasted(s), 1100*time.Millisecond)
			}
			// The broker's own count.
			truth := b.Stats()
			require.Equal(t, truth.Arrived, n[result.Sent])
			require.Equal(t, truth.Ended[driver.Accepted], n[result.Completed])
			require.Equal(t, truth.Delivered, n[result.Received])
			require.Zero(t, truth.Connections)
		})
	}
}

// Messages of transactions that are rolled back are not missing; those lost beside them are.
func TestWithheldMessagesAreNotMissing(t *testing.T) {
	for _, lose := range []int{0, 100} {
		synctest.Test(t, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Rollback, o.Lose = 10, lose })
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) { p.Count = 1000 }), nil)
			truth := b.Stats()
			require.EqualValues(t, 100, truth.RolledBack)
			require.EqualValues(t, 1000, s.Total.Get(result.Completed))
			require.EqualValues(t, 900-truth.Lost, s.Total.Get(result.Received))
			require.EqualValues(t, 900, *s.Expected)
			require.Equal(t, truth.Lost, *s.Missing)
			require.Equal(t, lose == 0, s.Outcome.Success, s.Problems())
		})
	}
}

// A broker that drops all properties between two protocols makes strangers of our own messages: the summary must not
// just call them missing.
func TestPropertiesLostBetweenProtocols(t *testing.T) {
	const text = "none of the 100 messages received from "
	for _, tt := range []struct {
		name           string
		protocols      []string
		strips, verify bool
		says           bool
	}{
		{"dropped", []string{"one", "two"}, true, false, true},
		{"dropped, verified", []string{"one", "two"}, true, true, true},
		{"kept", []string{"one", "two"}, false, false, false},
		{"one protocol", []string{"one", "one"}, true, false, false},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			f := delivering(mem.New().Factory(), func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
				if tt.strips {
					d.HasTime, d.Time, d.ID = false, 0, driver.ID{}
				}
				deliver(d)
			})
			s, _ := run(t, newPlan(f, func(p *flat) {
				p.Count, p.Verify = 100, tt.verify
				p.Producer.Factory.Name, p.Consumer.Factory.Name = tt.protocols[0], tt.protocols[1]
			}), nil)
			require.Equal(t, !tt.strips, s.Outcome.Success)
			require.Equal(t, tt.says, strings.Contains(strings.Join(s.Problems(), "\n"), text), s.Problems())
		})
	}
}

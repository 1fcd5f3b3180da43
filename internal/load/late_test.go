package load_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// A broker that acknowledges nothing for one second of two, at 1000 msg/s. Where the second shows depends on
// max-pending: with few messages in flight the producer must wait, so it shows in send delay; with many the messages
// lie at the broker, so it shows in send ack. It always shows in the response time.
func TestStallOfOneSecond(t *testing.T) {
	tests := []struct {
		pending           int
		delay, ack        time.Duration // p90
		delayMax, respMax time.Duration
	}{
		{1, 800 * time.Millisecond, 0, 0, 0},
		{10, 800 * time.Millisecond, 0, 0, 0},
		{100_000, 0, 800 * time.Millisecond, 0, 0},
	}
	for _, tt := range tests {
		inBubble(t, fmt.Sprint(tt.pending), func(t *testing.T) {
			r := newRig(setup{Schedule: constant(t, "1000"), MaxPending: tt.pending, Count: 2000})
			ack := 10 * time.Microsecond
			r.Attach(r.later(func(at time.Duration) time.Duration {
				if at >= 500*time.Millisecond && at < 1500*time.Millisecond {
					return 1500*time.Millisecond - at + ack
				}
				return ack
			}))
			runFor(t, r, time.Minute)
			pass(2 * time.Second)
			s := r.snapshot()
			require.EqualValues(t, 2000, s.Total.Get(result.Completed))
			require.Zero(t, s.Total.Get(result.LateSends), "it was the broker")
			l := s.Latencies
			// Of 2000 messages, those due in the 1000 ms of the stall waited 0 to 1 s: p50 is about 0, p75 half a
			// second, p90 0.8 s.
			within1Percent(t, 800*time.Millisecond, l[result.Response].Percentile(90), "response p90")
			within1Percent(t, 500*time.Millisecond, l[result.Response].Percentile(75), "response p75")
			within1Percent(t, time.Second, l[result.Response].Max, "response max")
			if tt.delay > 0 {
				require.InDelta(t, tt.delay.Microseconds(), l[result.Delay].Percentile(90), 30_000)
				require.LessOrEqual(t, l[result.Ack].Percentile(99), 15*us)
			} else {
				require.Zero(t, l[result.Delay].Max)
				within1Percent(t, tt.ack, l[result.Ack].Percentile(90), "ack p90")
			}
			for _, p := range []float64{50, 75, 90, 99} {
				require.GreaterOrEqual(t, l[result.Response].Percentile(p), l[result.Ack].Percentile(p))
			}
		})
	}
}

// A broker that is only a little slower in Send than the rate needs: no single message waits long, yet none of the
// growing delay is the tester's fault. And the other way round: work of the tester itself counts as late.
func TestLateSends(t *testing.T) {
	tests := []struct {
		name  string
		send  time.Duration // each Send takes this
		rate  string
		waits string // the driver says that it waited for that; empty if it does not report its waits
		late  bool
	}{
		{"in time", 50 * time.Microsecond, "1000", "", false},
		{"slow broker", 2 * time.Millisecond, "1000", "", false},
		{"nobody knows whose fault it is", 300 * time.Microsecond, "5000", "", true},
		{"no credit", 300 * time.Microsecond, "5000", "credit", false},
		{"slow network", 300 * time.Microsecond, "5000", "socket", false},
		{"slow driver", 2 * time.Millisecond, "1000", "nothing", true},
		{"rate beyond the tester", 20 * time.Microsecond, "100000", "", true},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			r := newRig(setup{Schedule: constant(t, tt.rate), MaxPending: 10})
			var waits driver.Waits
			send := sender(func(_ context.Context, m *driver.Message) error {
				pass(tt.send)
				switch tt.waits {
				case "credit":
					waits.Credit.Time += tt.send
				case "socket":
					waits.Socket.Time += tt.send
				}
				r.Done(m.Slot, driver.Outcome{})
				return nil
			})
			if tt.waits == "" {
				r.Attach(send)
			} else {
				r.Attach(waitingSender{send, &waits})
			}
			runFor(t, r, 2*time.Second)
			n := r.snapshot().Total.Values()
			if tt.late {
				require.Greater(t, n[result.LateSends], n[result.Sent]*9/10)
			} else {
				require.Zero(t, n[result.LateSends])
			}
		})
	}
}

// A message that is late, and waits in Send until the load ends, was not sent: it is not one that was sent late.
func TestUnsentIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(setup{Schedule: constant(t, "1000"), MaxPending: 10})
		r.Attach(sender(func(ctx context.Context, _ *driver.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		pass(200 * time.Millisecond) // before Run: the goroutine did not get a processor
		runFor(t, r, time.Second)
		n := r.snapshot().Total.Values()
		require.Zero(t, n[result.Sent])
		require.Zero(t, n[result.LateSends])
	})
}

// The tester is starved: it wakes 200 ms late, once. The clock of the producer was wrong, not the broker.
func TestStarvedTesterIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(setup{Schedule: constant(t, "1000"), MaxPending: 10, Count: 1000})
		r.Attach(r.answers(nil))
		pass(200 * time.Millisecond) // before Run: the goroutine did not get a processor
		runFor(t, r, time.Minute)
		s := r.snapshot()
		// Messages 0 to 194 left more than 5 ms late.
		require.EqualValues(t, 195, s.Total.Get(result.LateSends))
		within1Percent(t, 200*time.Millisecond, s.Latencies[result.Delay].Max, "delay max")
	})
}

// A stall of the broker must not excuse the tester's own lateness afterwards.
func TestStallDoesNotHideLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(setup{Schedule: constant(t, "1000"), MaxPending: 10, Count: 500})
		first := true
		r.Attach(r.answers(func(m *driver.Message) {
			if first {
				pass(100 * time.Millisecond) // the broker
			}
			first = false
			pass(90 * time.Microsecond) // the tester, 9% of a period: catches up slowly
		}))
		runFor(t, r, time.Minute)
		require.Zero(t, r.snapshot().Total.Get(result.LateSends))
	})
}

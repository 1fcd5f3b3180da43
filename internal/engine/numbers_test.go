package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// Messages due in the warm-up do not enter the measurement if a stall delays them beyond it; all measured latencies
// are of the same messages.
func TestStallInWarmup(t *testing.T) {
	for _, pending := range []int{1, 100, 0} {
		synctest.Test(t, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) {
				o.StallAfter, o.StallFor, o.Latency = 500*time.Millisecond, 1400*time.Millisecond, 50*time.Microsecond
			})
			s, rep := run(t, newPlan(b.Factory(), func(p *flat) {
				p.Rate, p.Duration, p.Warmup, p.MaxPending = rate("1000"), 7*time.Second, 2*time.Second, pending
			}), nil)
			require.True(t, s.Outcome.Success, s.Problems())
			require.EqualValues(t, 7000, s.Total.Get(result.Completed))
			require.EqualValues(t, 5000, s.Measured.Get(result.Sent))
			require.EqualValues(t, 5000, s.Measured.Get(result.Completed))
			require.EqualValues(t, 5000, s.Measured.Get(result.Received))
			l := s.Latencies
			for _, x := range []*result.Latency{l[result.Delay], l[result.Ack], l[result.Response], l[result.Transfer]} {
				require.EqualValues(t, 5000, x.Count, "5000 were due")
			}
			// Catching up takes some time at max-pending 1, which is no part of the stall.
			require.Less(t, l[result.Response].Percentile(99), int64(100_000))
			var leftover int64
			for _, snap := range rep.snapshots {
				if snap.Leftover != nil && snap.Leftover[result.Ack] != nil {
					leftover += snap.Leftover[result.Ack].Count
				}
			}
			if pending == 100 { // sends end in the order of their times
				require.Zero(t, leftover)
			}
		})
	}
}

// Where the producer is late itself, a message may be sent after the warm-up although it was due in it. It does not say
// when it was due, and yet its transfer time is left out as its other latencies are.
func TestWarmupMessagesThatWereSentLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{}
		start := time.Now()
		h.send = func(_ context.Context, send func() error) error {
			if d := time.Since(start); d > 1500*time.Millisecond && d < 2500*time.Millisecond {
				pass(2500*time.Millisecond - d)
			}
			return send()
		}
		for _, verify := range []bool{false, true} {
			start = time.Now()
			s, _ := run(t, newPlan(h.factory(mem.New().Factory()), func(p *flat) {
				p.Rate, p.Duration, p.Warmup, p.Producers = rate("100"), 4*time.Second, 2*time.Second, 3
				p.Verify = verify
			}), nil)
			require.True(t, s.Outcome.Success, s.Problems())
			require.EqualValues(t, 200, s.Latencies[result.Transfer].Count)
			require.EqualValues(t, 200, s.Latencies[result.Response].Count)
			require.EqualValues(t, 200, s.Measured.Get(result.Received))
		}
	})
}

// A message is lost only if a broker that answers does not have it.
func TestStalledBrokerHasNotLost(t *testing.T) {
	tests := []struct {
		name    string
		options func(*mem.Options)
		lost    uint64
		doubt   bool
		drain   time.Duration // 0: as usual
	}{
		{"stalled to the end", func(o *mem.Options) { o.StallAfter, o.StallFor = time.Second, time.Hour }, 0, true, 0},
		{"lost", func(o *mem.Options) { o.Lose = 1000 }, 2, false, 0},
		{"lost, after a stall", func(o *mem.Options) { o.Lose, o.StallAfter, o.StallFor = 1000, 1900*time.Millisecond, time.Second }, 2, false, 0},
		{
			"lost; answered after the drain time-out",
			func(o *mem.Options) {
				o.Lose, o.StallAfter, o.StallFor = 1000, 2100*time.Millisecond, 1500*time.Millisecond
			}, 2, false, time.Second,
		},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, tt.options)
			s, _ := run(t, newPlan(b.Factory(), verified, func(p *flat) {
				p.Rate, p.Duration, p.Producers, p.MaxPending = rate("1000"), 2*time.Second, 4, 1000
				if tt.drain > 0 {
					p.DrainTimeout = tt.drain
				}
			}), nil)
			require.False(t, s.Outcome.Success)
			v := s.Verification.Total
			require.Equal(t, tt.lost, v.Lost)
			require.Zero(t, v.Left)
			require.Equal(t, tt.doubt, v.UnconfirmedMissing > 0)
			if tt.lost > 0 {
				require.Contains(t, strings.Join(s.Warnings(), "\n"), "the queue's other consumers")
			}
		})
	}
}

// A stalled broker had confirmed messages that it then did not deliver: they are left, all of them.
func TestConfirmedButStalledIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.DeliveryLatency = 100 * time.Millisecond })
		o := mem.Options{}
		o.StallFor, o.DeliveryLatency = time.Hour, 100*time.Millisecond
		time.AfterFunc(1950*time.Millisecond, func() { b.Set(o) }) // from the next message on
		s, _ := run(t, newPlan(b.Factory(), verified, func(p *flat) {
			p.Rate, p.Duration, p.MaxPending = rate("1000"), 1960*time.Millisecond, 0
		}), nil)
		require.Zero(t, s.Verification.Total.Lost)
		require.Positive(t, s.Verification.Total.Left)
		require.Contains(t, strings.Join(s.Warnings(), "\n"), "the broker gave no answer before the consumers ended")
	})
}

// A load that sent or completed nothing is no success.
func TestNothingDone(t *testing.T) {
	waitForEver := func(ctx context.Context, _ func() error) error {
		<-ctx.Done()
		return driver.Errorf(driver.ClassTimeout, "send", "", "%w", ctx.Err())
	}
	full := func(t *testing.T) driver.Factory {
		b := broker(t, nil)
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) { p.Role, p.Count = plan.Producer, 1 }), nil)
		require.True(t, s.Outcome.Success)
		o := mem.Options{}
		o.Limit = 1
		b.Set(o)
		return b.Factory()
	}
	tests := []struct {
		name    string
		factory func(t *testing.T) driver.Factory
		edit    func(*flat)
		problem string
		blocked uint64
	}{
		{"no credit", full, nil, "nothing was sent: the broker granted no credit", 1},
		{"Send does not return", func(*testing.T) driver.Factory {
			return (&hooks{send: waitForEver}).factory(mem.New().Factory())
		}, nil, "nothing was sent: the producers waited for the broker", 0},
		{"nothing is answered", func(t *testing.T) driver.Factory {
			return broker(t, func(o *mem.Options) { o.Withhold = 1 }).Factory()
		}, nil, "nothing was completed: the broker accepted none of 10 messages", 1},
		{"all is refused", func(t *testing.T) driver.Factory {
			return broker(t, func(o *mem.Options) { o.Reject = 1 }).Factory()
		}, func(p *flat) { p.Rate = rate("5") }, "nothing was completed: the broker accepted none of 10 messages", 0},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			s, _ := run(t, newPlan(tt.factory(t), func(p *flat) {
				p.Role, p.Duration, p.MaxPending = plan.Producer, 2*time.Second, 10
			}, tt.edit), nil)
			require.False(t, s.Outcome.Success)
			require.Contains(t, strings.Join(s.Problems(), "\n"), tt.problem)
			require.Equal(t, tt.blocked, s.Total.Get(result.Blocked))
		})
	}
}

// A load that ends in its warm-up has no latencies in the summary, which says why.
func TestNothingMeasured(t *testing.T) {
	const text = "nothing was measured: there was no message after the warm-up of 2s"
	for name, tt := range map[string]struct {
		edit     func(*flat)
		expected bool
	}{
		"open loop, ends in the warm-up": {func(p *flat) { p.Rate, p.Count = rate("100"), 20 }, true},
		"ends after the warm-up":         {func(p *flat) { p.Rate, p.Count = rate("100"), 201 }, false},
	} {
		inBubble(t, name, func(t *testing.T) {
			s, _ := run(t, newPlan(mem.New().Factory(), func(p *flat) {
				p.Warmup = 2 * time.Second
				tt.edit(p)
			}), nil)
			require.True(t, s.Outcome.Success)
			require.Equal(t, tt.expected, slices.Contains(s.Warnings(), text), s.Warnings())
			require.Equal(t, !tt.expected, s.Measured.Get(result.Completed) > 0)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		sc := newScenario(mem.New().Factory(), false)
		senders := sc.senders("senders", func(g *plan.Group) { g.Count = 10 })
		sc.step("one", nil, senders)
		sc.step("two", func(s *plan.Step) { s.Warmup = 2 * time.Second }, senders)
		s, err := engine.Run(t.Context(), nil, sc.config(), new(recorder))
		require.NoError(t, err)
		require.Contains(t, s.Warnings(), "step two: "+text)
		require.NotContains(t, s.Warnings(), "step one: "+text)
	})
}

// Messages that each subscription of a topic receives are not taken for others: a message that waits for room until the
// load is over has not been sent, and is not of unknown end.
func TestBlockedOnATopic(t *testing.T) {
	for limit := 1; limit < 6; limit++ {
		synctest.Test(t, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Limit = limit })
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
				p.Destinations[0].Kind = driver.Topic
				p.Consumers, p.Duration, p.MaxPending, p.DrainTimeout = 3, 4*time.Second, 100, time.Second
				p.ConsumerWork = load.Work{Mean: 10 * time.Second}
			}), nil)
			// Each consumer has a message; more may come at the end, when its work on that one is cut short.
			require.GreaterOrEqual(t, s.Total.Get(result.Received), uint64(3))
			require.GreaterOrEqual(t, s.Total.Get(result.Sent), uint64(limit+1), "each consumer has a message, and as many wait") //nolint:gosec // small
			require.LessOrEqual(t, s.Total.Get(result.Sent), uint64(2*limit), "or it has taken as many at once")                  //nolint:gosec // small
			require.Equal(t, s.Total.Get(result.Sent), s.Total.Get(result.Completed))
			require.NotContains(t, strings.Join(s.Problems(), "\n"), "of unknown end")
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
			require.True(t, s.Outcome.Success, s.Problems())
			require.Equal(t, tt.left, s.Total.Get(result.NegativeTransfers))
			require.Equal(t, tt.left, s.Total.Get(result.Early))
			require.EqualValues(t, 400-tt.left, s.Latencies[result.Transfer].Count)
			if tt.left < 400 {
				require.EqualValues(t, 400-tt.left, s.Latencies[result.Lateness].Count)
			}
			require.Equal(t, 2*tt.left, s.Total.Get(result.NegativeAges))
			require.Nil(t, s.Latencies[result.B2C], "no message with an age has one that is known")
			for _, o := range s.Thresholds {
				require.Equal(t, tt.measured, o.Kept, o.String())
				require.Equal(t, tt.measured, !strings.HasSuffix(o.String(), "FAILED, not measured"), o.String())
			}
			said := strings.Contains(strings.Join(s.Warnings(), "\n"), "transfer times below zero, left out")
			require.Equal(t, tt.left > 0, said, s.Warnings())
			require.Empty(t, s.Stalls)
		})
	}
}

// TestCommits: transactions are counted, timed, and belong to the phase in which the broker was asked to commit them.
func TestCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Latency = 2 * time.Millisecond })
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Rate, p.Duration, p.Warmup = rate("100"), 4*time.Second, 2*time.Second
			p.CommitInterval = 10
		}), nil)
		require.True(t, s.Outcome.Success, s.Problems())
		require.EqualValues(t, 40, s.Total.Get(result.Commits))
		require.EqualValues(t, 20, s.Measured.Get(result.Commits))
		require.Zero(t, s.Total.Get(result.CommitsFailed))
		require.EqualValues(t, 20, s.Latencies[result.Commit].Count)
		require.InDelta(t, 2000, s.Latencies[result.Commit].Mean(), 10, "microseconds")
		require.EqualValues(t, b.Stats().Commits, s.Total.Get(result.Commits), "the broker's own count")
	})
}

// TestCommitsOfBothSides: consumers' commits count, too; unconfirmed commits are counted apart.
func TestCommitsOfBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Count, p.CommitInterval, p.TransactionSize = 100, 10, 5
		}), nil)
		require.True(t, s.Outcome.Success, s.Problems())
		require.EqualValues(t, 10+20, s.Total.Get(result.Commits))
		require.EqualValues(t, b.Stats().Commits, s.Total.Get(result.Commits), "the broker's own count")
		require.EqualValues(t, 30, s.Latencies[result.Commit].Count)
	})
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.FailCommit = 4 })
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Role, p.Count, p.CommitInterval = plan.Producer, 100, 10
		}), nil)
		require.False(t, s.Outcome.Success)
		require.EqualValues(t, 8, s.Total.Get(result.Commits))
		require.EqualValues(t, 2, s.Total.Get(result.CommitsFailed))
		require.EqualValues(t, b.Stats().CommitsRefused, s.Total.Get(result.CommitsFailed), "the broker's own count")
		require.EqualValues(t, 80, s.Total.Get(result.Completed))
		require.EqualValues(t, 8, s.Latencies[result.Commit].Count)
	})
}

// TestConsumerWork: consumers that work 2 ms on each message receive 500 per second each; consumers with a rate share
// it.
func TestConsumerWork(t *testing.T) {
	work := load.Work{Mean: 2 * time.Millisecond}
	for name, c := range map[string]struct {
		edit      func(*flat)
		perSecond float64
	}{
		"work":               {func(p *flat) { p.ConsumerWork = work }, 500},
		"rate":               {func(p *flat) { p.ConsumerRate = plainRate("800") }, 800},
		"work within a rate": {func(p *flat) { p.ConsumerWork, p.ConsumerRate = work, plainRate("100") }, 100},
	} {
		inBubble(t, name, func(t *testing.T) {
			s, _ := run(t, newPlan(broker(t, nil).Factory(), verified, func(p *flat) {
				p.Count, p.MaxPending, p.DrainTimeout = 4000, 100, time.Hour
				c.edit(p)
			}), nil)
			require.True(t, s.Outcome.Success, s.Problems())
			require.EqualValues(t, 4000, s.Total.Get(result.Received))
			// After the last message there is a moment in which others may come.
			require.InEpsilon(t, 4000/c.perSecond, lasted(s).Seconds()-0.25, 0.02)
		})
	}
}

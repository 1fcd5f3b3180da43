package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestRampWorkers: worker i of n opens after i/n of the time, and sends its share of the rate, or of the count, from
// then on: the numbers of messages due are exact.
func TestRampWorkers(t *testing.T) {
	const producers = 10
	tests := []struct {
		name string
		edit func(*flat)
		sent func(i uint64) uint64 // by a producer
		last time.Duration         // of the load
	}{
		{"duration", func(p *flat) { p.Duration = 20 * time.Second }, func(i uint64) uint64 { return 10 * (20 - i) }, 20 * time.Second},
		{
			"warm-up", func(p *flat) { p.Duration, p.Warmup = 20*time.Second, 5*time.Second },
			func(i uint64) uint64 { return 10 * (20 - i) }, 20 * time.Second,
		},
		{"count", func(p *flat) { p.Count = 1000 }, func(uint64) uint64 { return 100 }, 19 * time.Second},
		{
			"schedule", func(p *flat) { p.Rate = rate("100 for 5s, 200 for 5s") }, func(uint64) uint64 { return 150 }, 19 * time.Second,
		},
		{
			"over before its end", func(p *flat) { p.RampWorkers, p.Duration = 40*time.Second, 41*time.Second },
			func(i uint64) uint64 { return 10 * (41 - 4*i) }, 41 * time.Second,
		},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Connect, o.Login = 20*time.Millisecond, 50*time.Millisecond })
			s, rec := run(t, newPlan(b.Factory(), verified, func(p *flat) {
				p.Producers, p.Consumers, p.Rate, p.RampWorkers, p.MaxPending = producers, 5, rate("100"), 10*time.Second, 1000
			}, tt.edit), nil)
			require.True(t, s.Outcome.Success, s.Problems())
			require.Empty(t, s.Warnings())
			var all uint64
			for _, w := range s.Workers {
				if i := len(w.Name) - 1; w.Producers != nil {
					want := tt.sent(uint64(w.Name[i] - '0'))
					require.Equal(t, want, w.Producers.Sent, w.Name)
					all += want
				}
			}
			require.Equal(t, all, s.Total.Get(result.Sent))
			require.Equal(t, all, s.Total.Get(result.Received))
			if tt.name != "warm-up" {
				require.Equal(t, all, s.Offered.Due)
			}
			require.InDelta(t, tt.last, lasted(s), float64(time.Second))
			require.EqualValues(t, 15, s.Latencies[result.Open].Count)
			require.EqualValues(t, 70_000, s.Latencies[result.Open].Max, "each opens when it is due")
			require.LessOrEqual(t, s.Latencies[result.Delay].Max, int64(80_000), "what is due while its producer opens waits")
			require.Equal(t, s.Offered.Due, s.Offered.Sent)
			live := 0
			for _, row := range rec.snapshots {
				if row.Phase == result.Drain {
					break
				}
				require.GreaterOrEqual(t, row.Workers, live)
				live = row.Workers
			}
			require.Equal(t, 15, live)
			require.Equal(t, 2, rec.snapshots[0].Workers, "one of each side before the load")
		})
	}
}

// TestRampIsCutShort: a load that ends before all workers are open closes those that are, and one that loses its broker
// fails.
func TestRampIsCutShort(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Login = 400 * time.Millisecond })
			line, stop := b.Line(), make(chan struct{})
			time.AfterFunc(5250*time.Millisecond, func() { // while nothing else is due
				if lost {
					line.Cut()
				} else {
					close(stop)
				}
			})
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
				through(p, line)
				p.Producers, p.Rate, p.RampWorkers, p.Duration = 100, rate("100"), 10*time.Second, 20*time.Second
			}), stop)
			require.Equal(t, !lost, s.Outcome.Success, s.Problems())
			require.InDelta(t, 5250*time.Millisecond, lasted(s), float64(2*time.Second))
			require.Zero(t, b.Stats().Connections)
			require.Empty(t, s.Outcome.LeftBehind)
			if !lost {
				require.InDelta(t, 42, s.Latencies[result.Open].Count, 1, "those due 0.4 s before its end, at 4.4 s")
				require.Equal(t, s.Offered.Due, s.Total.Get(result.Sent))
			}
		})
	}
}

// TestRampInSteps: workers that are open keep their connections; the ones that a step left out open with the next one,
// or in its ramp if the group opens anew.
func TestRampInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := newScenario(broker(t, nil).Factory(), false)
		group := func(ramp time.Duration, r string) *plan.Group {
			return sc.senders("in", func(g *plan.Group) {
				g.Producers, g.Rate, g.RampWorkers, g.MaxPending = 4, rate(r), ramp, 100
			})
		}
		sc.step("ramp", func(s *plan.Step) { s.Duration = 6 * time.Second }, group(5*time.Second, "4"))
		sc.step("open", func(s *plan.Step) { s.Duration = 5 * time.Second }, group(2*time.Second, "40"))
		s := sc.run(t, nil)
		require.True(t, s.Outcome.Success, s.Problems())
		// 1/s of each, a quarter of a second after one another, from 0, 1.25, 2.5 and 3.75 s on.
		require.EqualValues(t, 6+5+3+2, s.Ended[0].Total.Get(result.Sent))
		require.EqualValues(t, 6+5+3+2, s.Ended[0].Due)
		require.EqualValues(t, 200, s.Ended[1].Total.Get(result.Sent), "all are open: there is no ramp")
		require.EqualValues(t, 4, s.Latencies[result.Open].Count)
	})
}

// TestRampAtRandom: random arrivals begin with their worker, too; the same seed gives the same numbers.
func TestRampAtRandom(t *testing.T) {
	var sent [2]uint64
	for i := range sent {
		synctest.Test(t, func(t *testing.T) {
			s, _ := run(t, newPlan(broker(t, nil).Factory(), func(p *flat) {
				p.Producers, p.Rate, p.Poisson, p.RampWorkers, p.Duration, p.Seed = 10, rate("1000"), true, 10*time.Second, 20*time.Second, 7
				p.Rate.Schedule, _ = p.Rate.Poisson()
				p.MaxPending = 1000
			}), nil)
			require.True(t, s.Outcome.Success, s.Problems())
			sent[i] = s.Total.Get(result.Sent)
			require.Equal(t, s.Offered.Due, sent[i])
			require.InDelta(t, 15_500, sent[i], 5*125, "five standard deviations")
		})
	}
	require.Equal(t, sent[0], sent[1])
}

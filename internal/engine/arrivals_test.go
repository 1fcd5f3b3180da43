package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// runAtRandom runs a load of five producers with random arrivals, over a broker with that latency.
func runAtRandom(t *testing.T, perSecond string, latency time.Duration, edits ...func(*flat)) *stats.Summary {
	b := mem.New()
	b.Set(mem.Options{Latency: latency})
	s, _ := run(t, newPlan(b.Factory(), append([]func(*flat){func(p *flat) {
		p.Rate, p.Seed, p.Producers, p.MaxPending, p.Role = rate("poisson "+perSecond), 7, 5, 100, plan.Producer
		p.Group.Name = "senders"
	}}, edits...)...), nil)
	require.True(t, s.Outcome.Success, s.Problems())
	return s
}

// ofShard runs the load in one of several processes.
func ofShard(number, of int) func(*flat) {
	return func(p *flat) { p.Shard, p.RunID = plan.Shard{Number: number + 1, Of: of}, 1 }
}

// The messages due at random are known exactly: sent or not, in the warm-up or not, in one process or several.
func TestRandomArrivalsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// due returns the messages due in all and after the warm-up, and those sent.
		due := func(latency time.Duration, edits ...func(*flat)) (due, sent [2]uint64) {
			s := runAtRandom(t, "ramp 0 to 200 for 10s", latency, append(edits, func(p *flat) {
				p.Duration, p.Warmup = 10*time.Second, 7*time.Second
				p.Step.Thresholds = demands(t, "completed.avg <= 101% of target")
			})...)
			require.False(t, threshold.Fail(s.Thresholds), s.Thresholds)
			require.InDelta(t, float64(s.Offered.Due)/3, s.Offered.Rate, 1e-9)
			return [2]uint64{s.Groups[0].Due, s.Offered.Due}, [2]uint64{s.Total.Get(result.Sent), s.Measured.Get(result.Sent)}
		}
		whole, sent := due(0)
		require.Equal(t, whole, sent)
		require.InDelta(t, 1000, whole[0], 4*32)
		require.InDelta(t, 510, whole[1], 4*23)
		blocked, sent := due(time.Second, func(p *flat) { p.MaxPending = 1 })
		require.Less(t, sent[0], uint64(60))
		require.Equal(t, whole, blocked)
		var sum [2]uint64
		for number := range 3 {
			part, sent := due(time.Second, ofShard(number, 3))
			require.Equal(t, part, sent)
			sum = [2]uint64{sum[0] + part[0], sum[1] + part[1]}
		}
		require.Equal(t, whole, sum)
		other, _ := due(0, func(p *flat) { p.Seed = 8 })
		require.NotEqual(t, whole, other)
	})
}

// A count is exact, and its messages are those due first. Long times without a message are no silence of the broker.
func TestRandomArrivalsOfACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 100
		for perSecond, warmup := range map[string]time.Duration{"0.1": 0, "100": 500 * time.Millisecond} {
			var total uint64
			var longest time.Duration
			for number := range 2 {
				s := runAtRandom(t, perSecond, 0, ofShard(number, 2), func(p *flat) { p.Count, p.Warmup = count, warmup })
				require.Equal(t, s.Groups[0].Due, s.Total.Get(result.Sent))
				require.Equal(t, s.Measured.Get(result.Sent), s.Offered.Due)
				total, longest = total+s.Groups[0].Due, max(longest, s.Offered.Span+warmup)
			}
			require.EqualValues(t, count, total)
			require.InEpsilon(t, count/rate(perSecond).Peak(), longest.Seconds(), 0.4)
		}
		s := runAtRandom(t, "100", time.Second, func(p *flat) { p.Count, p.MaxPending = count, 1 })
		require.Equal(t, [2]uint64{count, count}, [2]uint64{s.Groups[0].Due, s.Total.Get(result.Sent)})
		require.InDelta(t, 2000, s.Offered.Due, 1000, "it ended late, and missed the rate")
	})
}

// A share of a rate that an earlier step reached has the arrivals of its group. Each step has draws of its own.
func TestRandomArrivalsOfAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runAtRandom(t, "100", 0, func(p *flat) {
			p.Duration = 10 * time.Second
			share := *p.Group
			share.Poisson, share.Rate = true, plan.Rate{Relative: &plan.Relative{Percent: 50, Step: p.Step.Name, Metric: "completed.avg"}}
			p.Steps = append(p.Steps, plan.Step{Name: "half", Duration: 100 * time.Second, Groups: []*plan.Group{&share}}, *p.Step)
		})
		require.NotEqual(t, s.Ended[0].Offered.Due, s.Ended[2].Offered.Due)
		half := s.Ended[1]
		require.NotEqualValues(t, 5000, half.Offered.Due)
		require.InDelta(t, 5000, half.Offered.Due, 4*71)
		require.Equal(t, half.Offered.Due, half.Measured.Get(result.Sent))
	})
}

// A consumer with a fixed time of work makes messages that arrive at random wait as the formula of Pollaczek and
// Khinchine says, and those that arrive evenly not at all.
func TestWaitsForAConsumer(t *testing.T) {
	for perSecond, u := range map[string]float64{"poisson 500": 0.5, "poisson 800": 0.8, "even 800": 0} {
		synctest.Test(t, func(t *testing.T) {
			s := runAtRandom(t, "1", 0, func(p *flat) {
				p.Role, p.Rate, p.Count = plan.Client, rate(perSecond), 100_000
				p.ConsumerWork, _ = load.ParseWork("1ms")
			})
			wait := u / 2 / (1 - u) * 1000
			require.InDelta(t, wait, s.Latencies[result.Transfer].Mean(), 0.03*wait+10, perSecond)
		})
	}
}

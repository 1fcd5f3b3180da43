package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// runSkewed runs a load of two producers for each of four destinations, and returns the messages of each.
func runSkewed(t *testing.T, edits ...func(*flat)) (s *stats.Summary, sent [4]uint64) {
	b := mem.New()
	f := b.Factory()
	p := newPlan(f, func(p *flat) {
		p.Role, p.Group.Name, p.Producers, p.Destinations, p.MaxPending = plan.Producer, "senders", 2, nil, 1000
		for i := range sent {
			p.Destinations = append(p.Destinations, driver.Destination{Name: fmt.Sprintf("Q%d", i)})
		}
		p.Skew = 1
		for _, edit := range edits {
			edit(p)
		}
	})
	s, _ = run(t, p, nil)
	require.True(t, s.Outcome.Success, s.Problems())
	d, err := f.Open(t.Context(), driver.OpenOptions{URL: "mem://local", ConnectTimeout: time.Second, Options: f.NewOptions()})
	require.NoError(t, err)
	list, err := d.(driver.Inspector).Inspect(t.Context(), p.Destinations)
	require.NoError(t, err)
	for i := range list {
		sent[i] = list[i].Added.N
	}
	require.NoError(t, d.Close(t.Context()))
	return s, sent
}

// Weights of 1, 1/2, 1/3 and 1/4 divide each load exactly: of a count, a schedule or a duration, in one process or
// several.
func TestSkewIsExact(t *testing.T) {
	const ramp = "ramp 0 to 1000 for 1000s"
	for name, c := range map[string]struct {
		edit func(*flat)
		want [4]uint64
	}{
		"closed loop": {func(p *flat) { p.Count = 10_000 }, [4]uint64{4800, 2400, 1600, 1200}},
		"a count":     {func(p *flat) { p.Rate, p.Count = rate("10000"), 27 }, [4]uint64{13, 6, 5, 3}},
		"a schedule":  {func(p *flat) { p.Rate = rate("50 for 500s") }, [4]uint64{12_000, 6_000, 4_000, 3_000}},
		"a duration":  {func(p *flat) { p.Rate, p.Duration = rate(ramp), 100*time.Second }, [4]uint64{2400, 1200, 800, 600}},
		"rarely":      {func(p *flat) { p.Rate, p.Count = rate("0.01"), 25 }, [4]uint64{12, 6, 4, 3}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, sent := runSkewed(t, c.edit)
			require.Equal(t, c.want, sent, name)
			whole := s.Groups[0].Due
			if s.Offered.Rate > 0 {
				require.Equal(t, whole, s.Total.Get(result.Sent), name)
			}
			var sum [4]uint64
			var due uint64
			perSecond := 0.0
			for number := range 3 {
				part, sent := runSkewed(t, c.edit, ofShard(number, 3))
				for i, n := range sent {
					sum[i] += n
				}
				due, perSecond = due+part.Groups[0].Due, perSecond+part.Offered.Rate
			}
			require.Equal(t, c.want, sum, name)
			require.Equal(t, whole, due, name)
			require.InEpsilon(t, s.Offered.Rate+1, perSecond+1, 0.01, name)
		})
	}
}

// Each shard is measured against its own part of the rate: the producers of a shard of four send to one destination.
func TestSkewOfTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for number, part := range []float64{480, 240, 160, 120} {
			for _, arrivals := range []string{"", "poisson "} {
				s, _ := runSkewed(t, ofShard(number, 4), func(p *flat) {
					p.Rate, p.Duration, p.Warmup = rate(arrivals+"1000"), 100*time.Second, 20*time.Second
					p.Seed = 1
					p.Step.Thresholds = demands(t, "completed.avg >= 99.9% of target", "completed.avg <= 100.1% of target")
				})
				require.False(t, threshold.Fail(s.Thresholds), s.Thresholds)
				require.Equal(t, s.Offered.Due, s.Measured.Get(result.Sent))
				if arrivals == "" {
					require.InEpsilon(t, part, s.Offered.Rate, 1e-4)
				}
				require.InEpsilon(t, 80*part, s.Offered.Due, 0.05)
			}
		}
	})
}

// Producers of large shares that cannot keep up miss the rate, the others do not.
func TestSkewIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sent := runSkewed(t, func(p *flat) {
			p.Rate, p.Duration, p.MaxPending, p.Producers = rate("500"), 100*time.Second, 1, 1
			p.Producer.Options = &mem.Options{Latency: 10 * time.Millisecond}
		})
		for i, want := range []float64{10_000, 10_000, 8000, 6000} {
			require.InDelta(t, want, sent[i], 2)
		}
		require.EqualValues(t, 50_000, s.Groups[0].Due)
		require.Equal(t, result.LimitMaxPending, s.Limit.Kind, s.Limit.Text)
		require.Contains(t, s.Limit.Text, "50% of the time", "two of four producers")
	})
}

// The count of a load with random arrivals is exact, the shares are those of the draws.
func TestSkewOfACountAtRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := func(p *flat) { p.Rate, p.Count, p.Seed = rate("poisson 1000"), 25_000, 1 }
		s, sent := runSkewed(t, random)
		require.EqualValues(t, 25_000, sent[0]+sent[1]+sent[2]+sent[3])
		require.EqualValues(t, 25_000, s.Groups[0].Due)
		for i, want := range []float64{12_000, 6000, 4000, 3000} {
			require.InDelta(t, want, sent[i], 4*math.Sqrt(want))
		}
		var sum [4]uint64
		for number := range 2 {
			_, part := runSkewed(t, random, ofShard(number, 2))
			for i, n := range part {
				sum[i] += n
			}
		}
		require.Equal(t, sent, sum)
	})
}

// A later step has other shares, with the same connections.
func TestSkewOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sent := runSkewed(t, func(p *flat) {
			p.Count, p.Rate = 2500, rate("1000")
			even, steep := *p.Group, *p.Group
			even.Skew, even.Rate = 0, rate("100")
			steep.Skew, steep.Count, steep.Rate = 10, 1025, rate("100")
			p.Steps = append(p.Steps, plan.Step{Name: "even", Groups: []*plan.Group{&even}},
				plan.Step{Name: "steep", Groups: []*plan.Group{&steep}})
		})
		require.Equal(t, [4]uint64{1200 + 625 + 1024, 600 + 625 + 1, 400 + 625, 300 + 625}, sent)
		require.EqualValues(t, 1025, s.Ended[2].Offered.Due)
	})
}

// keysOf runs a load with 50 group keys, and returns the messages of each key, and all in the order in which they came.
func keysOf(t *testing.T, edits ...func(*flat)) (counts map[string]int, order []string) {
	t.Helper()
	b := mem.New()
	f := b.Factory()
	open, counts := f.Open, map[string]int{}
	var mu sync.Mutex
	f.Open = func(ctx context.Context, o driver.OpenOptions) (driver.Driver, error) {
		d, err := open(ctx, o)
		return keyDriver{d, func(key string) {
			mu.Lock()
			defer mu.Unlock()
			counts[key]++
			order = append(order, key)
		}}, err
	}
	p := newPlan(f, append([]func(*flat){func(p *flat) {
		p.Role, p.Producers, p.Keys, p.KeySkew, p.Seed, p.MaxPending = plan.Producer, 4, 50, 1.2, 42, 10
		p.Count = 2000
	}}, edits...)...)
	s, err := carryOut(t.Context(), nil, p, new(recorder))
	require.NoError(t, err)
	require.True(t, s.Outcome.Success, s.Problems())
	return counts, order
}

// keyDriver reports the groups of the messages sent.
type keyDriver struct {
	driver.Driver
	sent func(string)
}

func (d keyDriver) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completions) (driver.Producer, error) {
	if spec.Variants[0].Group != "key-00" {
		return nil, errors.New("the variant has no group")
	}
	p, err := d.Driver.Producer(ctx, spec, done)
	return keyProducer{p, d.sent}, err
}

type keyProducer struct {
	driver.Producer
	sent func(string)
}

func (p keyProducer) Send(ctx context.Context, m *driver.Message) error {
	err := p.Producer.Send(ctx, m)
	if err == nil {
		p.sent(m.Group)
	}
	return err
}

// The key of a message follows from the seed and the number of the message: at a rate, in a closed loop, in shards, or
// sent again.
func TestKeysOfMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts, _ := keysOf(t)
		require.InDelta(t, 49, len(counts), 1)
		require.InDelta(t, 611, counts["key-00"], 80)
		rated, order := keysOf(t, func(p *flat) { p.Rate = rate("1000") })
		require.Equal(t, counts, rated)
		random, _ := keysOf(t, func(p *flat) { p.Rate = rate("poisson 1000"); p.Producers = 1 })
		require.Equal(t, counts, random)
		_, one := keysOf(t, func(p *flat) { p.Producers = 1 })
		require.Equal(t, one, order)
		sum := map[string]int{}
		for number := range 3 {
			part, _ := keysOf(t, ofShard(number, 3))
			for key, n := range part {
				sum[key] += n
			}
		}
		require.Equal(t, counts, sum)
		other, _ := keysOf(t, func(p *flat) { p.Seed = 43 })
		require.NotEqual(t, counts, other)
		again, _ := keysOf(t, func(p *flat) {
			p.Producer.Options = &mem.Options{Withhold: 10}
			p.SendTimeout, p.Resend, p.Producers = time.Second, true, 1
		})
		total := 0
		for key, n := range again {
			require.GreaterOrEqual(t, n, counts[key], key)
			total += n
		}
		require.Greater(t, total, 2000)
	})
}

//go:build unix

package load_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPacing reports how precisely messages leave at a rate, on the mem driver: percentiles of send delay, and the
// share of one processor that it costs. One operation is one second of load.
func BenchmarkPacing(b *testing.B) {
	for _, load := range []struct {
		producers int
		rate      string
	}{{1, "1000"}, {1, "10000"}, {1, "30000"}, {30, "1000"}} {
		for _, how := range pacings {
			b.Run(fmt.Sprintf("producers=%d/rate=%s/%s", load.producers, load.rate, how.name), func(b *testing.B) {
				benchmarkPacing(b, load.producers, load.rate, how.set)
			})
		}
	}
}

func benchmarkPacing(b *testing.B, producers int, paced string, set func(*setup)) {
	f := mem.Factory()
	d, err := f.Open(b.Context(), driver.OpenOptions{URL: "mem://local", Options: f.NewOptions()})
	require.NoError(b, err)
	clock := load.NewClock()
	var recs []*stats.ProducerRecorder
	var loads []*running
	for i := range producers {
		rec := stats.NewProducerRecorder(true, nil)
		cfg := setup{Index: i, Total: producers, Schedule: constant(b, paced), MaxPending: 100}
		set(&cfg)
		p := newRunning(cfg, clock, rec)
		dp, err := d.Producer(b.Context(), driver.ProducerSpec{
			Destination: driver.Destination{Kind: driver.Topic, Name: "T"}, MaxPending: 100,
			Variants: []driver.Variant{{Body: make([]byte, 1024), Priority: -1}},
		}, p)
		require.NoError(b, err)
		p.Attach(dp)
		recs, loads = append(recs, rec), append(loads, p)
		defer dp.Close(context.Background())
	}
	defer d.Close(context.Background())
	ctx, cancel := context.WithTimeout(b.Context(), time.Duration(b.N)*time.Second)
	defer cancel()
	b.ResetTimer()
	clock.Begin()
	begun, cpu := time.Now(), cpuTime()
	var wg sync.WaitGroup
	for _, p := range loads {
		wg.Go(func() { _ = p.Run(ctx) })
	}
	wg.Wait()
	used, wall := cpuTime()-cpu, time.Since(begun)
	s := stats.NewCollector(recs, nil, clock.Start()).Collect(stats.Measure, time.Now(), true)
	b.ReportMetric(float64(s.Latencies[result.Delay].Percentile(50)), "p50-us")
	b.ReportMetric(float64(s.Latencies[result.Delay].Percentile(99)), "p99-us")
	b.ReportMetric(float64(s.Latencies[result.Delay].Max), "max-us")
	b.ReportMetric(100*used.Seconds()/wall.Seconds(), "cpu-%")
	b.ReportMetric(float64(s.Total.Get(result.Sent))/wall.Seconds(), "msg/s")
}

var pacings = []struct {
	name string
	set  func(*setup)
}{
	{"timer", func(c *setup) {}},
	{"precise", func(c *setup) { c.Precise = true }},
}

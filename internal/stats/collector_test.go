package stats_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// A message belongs to the phase in which it was due, whenever it ends: its latencies, and its outcome.
func TestPhaseOfMessages(t *testing.T) {
	start := time.Now()
	p, k := stats.NewProducerRecorder(true, nil), stats.NewConsumerRecorder()
	c := collectorOf(start, p, k)
	send := func(due stats.Phase, n int) {
		for range n {
			p.Begun(due)
			p.Handed(due, time.Millisecond)
		}
	}
	end := func(due stats.Phase, n int, d time.Duration) {
		for range n {
			p.Done(stats.End{Due: due, Size: 7, Intended: -d, Actual: -d}, driver.Outcome{}, 0)
			k.Received(stats.Receipt{Due: due, Stamped: true, Transfer: d})
			k.Ages(due, 2_000_000, 2_000_000-d.Microseconds(), 0)
		}
	}
	counts := func(l result.Latencies) [5]int64 {
		n := [5]int64{}
		for i, x := range []*result.Latency{l[result.Delay], l[result.Ack], l[result.Response], l[result.Transfer], l[result.B2C]} {
			if x != nil {
				n[i] = x.Count
			}
		}
		return n
	}
	send(stats.Warmup, 7)
	end(stats.Warmup, 3, time.Second)
	send(stats.Measure, 2) // the cut comes a moment late
	end(stats.Measure, 1, time.Millisecond)
	s := c.Collect(stats.Warmup, start.Add(1500*time.Millisecond), false)
	require.Equal(t, result.Warmup, s.Phase)
	require.Equal(t, [5]int64{7, 3, 3, 3, 3}, counts(s.Latencies), "of the warm-up, and nothing else")
	require.Nil(t, s.Leftover)
	require.EqualValues(t, 9, s.Get(result.Sent))
	require.EqualValues(t, 4, s.Get(result.Completed))
	require.EqualValues(t, 1_500_000, s.Elapsed)
	require.Equal(t, [5]int64{}, counts(c.SumRun().Latencies))

	end(stats.Warmup, 4, time.Minute) // messages that a stall in the warm-up held up
	send(stats.Measure, 4)
	end(stats.Measure, 3, time.Millisecond)
	s = c.Collect(stats.Measure, start.Add(2*time.Second), false)
	require.EqualValues(t, 500_000, s.Length)
	require.EqualValues(t, 4, s.Get(result.Sent))
	require.EqualValues(t, 13, s.Total.Get(result.Sent))
	require.EqualValues(t, 7, s.Get(result.Completed), "it is the completions of the interval that count")
	require.Equal(t, [5]int64{6, 4, 4, 4, 4}, counts(s.Latencies))
	require.Equal(t, [5]int64{0, 4, 4, 4, 4}, counts(*s.Leftover))
	end(stats.Measure, 2, time.Millisecond)
	c.Collect(stats.Drain, start.Add(3*time.Second), true)

	sum := c.SumRun()
	require.EqualValues(t, 13, sum.Total.Get(result.Completed))
	require.EqualValues(t, 6, c.SumRun().Measured.Get(result.Completed))
	require.EqualValues(t, 6, c.SumRun().Measured.Get(result.Sent))
	require.EqualValues(t, 6, c.SumRun().Measured.Get(result.Received))
	l := c.SumRun().Latencies
	require.Equal(t, [5]int64{6, 6, 6, 6, 6}, counts(l))
	for _, x := range []*result.Latency{l[result.Delay], l[result.Ack], l[result.Response], l[result.Transfer], l[result.B2C]} {
		require.EqualValues(t, 1000, x.Max)
	}
}

// TestWorkersAreSmall: a run may have thousands of them.
func TestWorkersAreSmall(t *testing.T) {
	producer, consumer := unsafe.Sizeof(stats.ProducerRecorder{}), unsafe.Sizeof(stats.ConsumerRecorder{})
	require.Less(t, producer+consumer+2*unsafe.Sizeof(stats.Worker{}), uintptr(3300), "of each of 5,000 and 5,000")
}

func TestTester(t *testing.T) {
	start := time.Now()
	c := collectorOf(start, stats.NewProducerRecorder(true, nil), nil)
	for spin := time.Now(); time.Since(spin) < 20*time.Millisecond; {
	}
	s := c.Collect(stats.Measure, start.Add(time.Second), false)
	require.EqualValues(t, 1_000_000, s.Tester.Wall)
	require.Positive(t, s.Tester.CPU)
	s = c.Collect(stats.Measure, start.Add(3*time.Second), false)
	require.EqualValues(t, 2_000_000, s.Tester.Wall)
	whole := c.Tester(start.Add(3 * time.Second))
	require.EqualValues(t, 3_000_000, whole.Wall)
}

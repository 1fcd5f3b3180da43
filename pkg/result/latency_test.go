package result

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"
)

// One of 60 messages took 200 ms: more than 1% are above the others.
func TestPercentileOfFewValues(t *testing.T) {
	t.Parallel()
	l := NewLatency()
	for range 59 {
		l.Record(14_600 * time.Microsecond)
	}
	l.Record(200 * time.Millisecond)
	require.EqualValues(t, 200_000, l.Percentile(99))
	require.EqualValues(t, 14_655, l.Percentile(98))
	require.EqualValues(t, 200_000, l.Percentile(100))
	require.EqualValues(t, 14_655, l.Percentile(0))
	require.Zero(t, NewLatency().Percentile(99))
}

// The buckets equal the buckets of HdrHistogram: logs can be merged with others.
func TestBucketsAreHdrHistograms(t *testing.T) {
	t.Parallel()
	h := hdrhistogram.New(1, int64(MaxLatency), significantDigits)
	check := func(us int64) {
		top := highest(place(us))
		require.GreaterOrEqual(t, top, us)
		require.True(t, h.ValuesAreEquivalent(us, top), us)
		require.False(t, h.ValuesAreEquivalent(us, top+1), us)
		require.Less(t, place(us), octaveCount*octaveSize, us)
	}
	for us := range int64(1 << 14) {
		check(us)
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // must be repeatable
	l := NewLatency()
	for range 100_000 {
		us := random.Int64N(int64(MaxLatency)) >> random.IntN(37)
		check(us)
		l.Record(time.Duration(us) * time.Microsecond)
		require.NoError(t, h.RecordValue(us))
	}
	check(int64(MaxLatency))
	require.True(t, l.Histogram.HDR().Equals(h))
}

// Counts beyond the range of a bucket are exact, whichever way they come.
func TestManyValues(t *testing.T) {
	t.Parallel()
	l := NewLatency()
	const n = 3*octaveFull + 7 // of which the octave keeps 7
	for range n {
		l.Record(time.Millisecond)
	}
	l.Record(2 * time.Millisecond)
	sum, want := NewLatency(), int64(0)
	for range 30_000 { // 7 a time, so that the sum's own bucket overflows as well
		sum.Merge(l)
		want += n
	}
	require.Greater(t, want, int64(1)<<32)
	require.Equal(t, []Bar{{1003, want}, {2007, 30_000}}, sum.Histogram.Bars())
	require.Equal(t, want+30_000, sum.Count)
	require.Equal(t, want+30_000, sum.Histogram.HDR().TotalCount())
	require.EqualValues(t, 1003, sum.Percentile(99.99))
	l.Reset()
	require.Empty(t, l.Histogram.Bars())
}

// The first values are held one by one: nobody sees when that ends, alone, merged or used again.
func TestFewValues(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // must be repeatable
	used, sum := NewLatency(), NewLatency()
	var all []int64
	want := func(values []int64) (list []Bar) {
		slices.Sort(values)
		for _, us := range values {
			upTo := highest(place(us))
			if n := len(list); n > 0 && list[n-1].UpTo == upTo {
				list[n-1].Count++
			} else {
				list = append(list, Bar{upTo, 1})
			}
		}
		return list
	}
	for n := range 3 * fewValues {
		l := NewLatency()
		used.Reset()
		var values []int64
		for range n {
			us := random.Int64N(1 << random.IntN(20) << 1)
			values = append(values, us)
			l.Record(time.Duration(us) * time.Microsecond)
			used.Record(time.Duration(us) * time.Microsecond)
		}
		all = append(all, values...)
		sum.Merge(l)
		require.Equal(t, want(values), l.Histogram.Bars(), "%d values", n)
		require.Equal(t, l.Histogram.Bars(), used.Histogram.Bars(), "%d values", n)
		require.EqualValues(t, n, l.Count)
		small := NewLatency()
		small.Record(time.Millisecond)
		small.Merge(l)
		require.Equal(t, want(append(values, 1000)), small.Histogram.Bars(), "%d values", n)
		require.Equal(t, want(slices.Clone(all)), sum.Histogram.Bars(), "%d values", n)
	}
}

// Thousands of workers have several distributions each.
func TestLatencyIsSmall(t *testing.T) {
	const n = 1000
	var before, after runtime.MemStats
	list := make([]*Latency, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range list {
		list[i] = NewLatency()
		for us := 64; us < 1<<12; us += 64 { // six powers of two
			list[i].Record(time.Duration(us) * time.Microsecond)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, float64(after.HeapAlloc)-float64(before.HeapAlloc), float64(n*4<<10))
	runtime.KeepAlive(list)
}

func TestMergeIsTheSum(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // must be repeatable
	whole, merged := NewLatency(), NewLatency()
	var values []int64
	for range 20 {
		part := NewLatency()
		for range 500 {
			us := random.Int64N(1 << random.IntN(30) << 1)
			values = append(values, us)
			part.Record(time.Duration(us) * time.Microsecond)
			whole.Record(time.Duration(us) * time.Microsecond)
		}
		merged.Merge(part)
	}
	require.Equal(t, whole.Histogram.Bars(), merged.Histogram.Bars())
	require.Equal(t, whole.Sum, merged.Sum)
	slices.Sort(values)
	require.Equal(t, values[len(values)-1], merged.Max)
	for _, p := range []float64{50, 99, 99.9} {
		exact := values[int(math.Ceil(p*float64(len(values))/100))-1]
		require.InEpsilon(t, exact, merged.Percentile(p), 0.01)
	}
}

func TestLatencyEdges(t *testing.T) {
	l := NewLatency()
	require.Zero(t, l.Mean())
	require.Zero(t, l.Max)
	require.Zero(t, l.Percentile(99))
	l.Merge(nil)
	l.Merge(NewLatency())
	require.Zero(t, l.Count)
	l.Record(0)
	l.Record(999 * time.Nanosecond)
	require.EqualValues(t, 2, l.Count)
	require.Zero(t, l.Percentile(100))
	copied := l.Histogram.HDR()
	l.Record(time.Second)
	require.EqualValues(t, 2, copied.TotalCount(), "a copy")
	l.Reset()
	require.Zero(t, l.Count)
	require.Zero(t, l.Sum)
	require.Zero(t, l.Max)
}

package report

import (
	"math"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/perfmq/perfmq/pkg/result"
)

// buckets is a histogram in microseconds, with Prometheus's classic buckets and as a native histogram.
type buckets struct {
	bounds [22]int64 // upper, inclusive, ascending: 10 us to 100 s
	counts [22]uint64
	count  uint64
	sum    int64

	// native counts by the index of the bucket: bucket i has values v in seconds with base^(i-1) < v <= base^i, where base
	// is 2^(1/8) (schema 3). MaxLatency bounds their number to some 300.
	native map[int]int64
	zero   uint64 // below 1 us
}

// nativeSchema is the resolution of native histograms: a bucket is 9% wide. (Prometheus, native histograms, "Schema".)
const (
	nativeSchema    = 3
	nativePerOctave = 1 << nativeSchema
)

func newBuckets() *buckets {
	b := &buckets{native: map[int]int64{}}
	for i := range b.bounds {
		decade := int64(10)
		for range i / 3 {
			decade *= 10
		}
		b.bounds[i] = decade * [...]int64{10, 25, 50}[i%3] / 10
	}
	return b
}

// add adds all values of l. A value counts as the upper bound of its bar in l, so it never lands in a bucket below its
// own.
func (b *buckets) add(l *result.Latency) {
	for _, bar := range l.Histogram.Bars() {
		for i, bound := range b.bounds {
			if bar.UpTo <= bound {
				b.counts[i] += uint64(bar.Count) //nolint:gosec // counts are not negative
				break
			}
		}
		if bar.UpTo <= 0 {
			b.zero += uint64(bar.Count) //nolint:gosec // counts are not negative
		} else {
			b.native[nativeIndex(bar.UpTo)] += bar.Count
		}
	}
	b.count += uint64(l.Count) //nolint:gosec // counts are not negative
	b.sum += l.Sum
}

// nativeIndex returns the index of the native bucket for us microseconds; us is above 0.
func nativeIndex(us int64) int {
	v := float64(us) / 1e6
	upper := func(i int) float64 { return math.Exp2(float64(i) / nativePerOctave) }
	i := int(math.Ceil(nativePerOctave * math.Log2(v)))
	for upper(i-1) >= v { // corrects rounding of the logarithm
		i--
	}
	for upper(i) < v {
		i++
	}
	return i
}

// metric returns the histogram as it is now.
func (b *buckets) metric(desc *prometheus.Desc, labels ...string) prometheus.Metric {
	h := &dto.Histogram{
		SampleCount: new(b.count), SampleSum: new(float64(b.sum) / 1e6), // copies: they are read without the lock
		Schema: new(int32(nativeSchema)), ZeroThreshold: new(prometheus.DefNativeHistogramZeroThreshold),
		ZeroCount: new(b.zero),
	}
	var sum uint64
	for i, bound := range b.bounds {
		sum += b.counts[i]
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(float64(bound) / 1e6), CumulativeCount: new(sum)})
	}
	indexes := make([]int, 0, len(b.native))
	for i := range b.native {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	var before int64
	for n, i := range indexes {
		if n == 0 || i != indexes[n-1]+1 {
			gap := i
			if n > 0 {
				gap -= indexes[n-1] + 1
			}
			span := &dto.BucketSpan{Offset: new(int32(gap)), Length: new(uint32(0))} //nolint:gosec // some hundred
			h.PositiveSpan = append(h.PositiveSpan, span)
		}
		*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		h.PositiveDelta = append(h.PositiveDelta, b.native[i]-before)
		before = b.native[i]
	}
	if len(indexes) == 0 {
		h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}} // marks an empty native histogram
	}
	return &histogram{desc: desc, labels: prometheus.MakeLabelPairs(desc, labels), figures: h}
}

// histogram is a metric with classic buckets, which every Prometheus reads, and native ones, which are sent over
// protobuf.
type histogram struct {
	desc    *prometheus.Desc
	labels  []*dto.LabelPair
	figures *dto.Histogram
}

// Desc returns the description.
func (h *histogram) Desc() *prometheus.Desc { return h.desc }

// Write writes the histogram to out.
func (h *histogram) Write(out *dto.Metric) error {
	out.Label, out.Histogram = h.labels, h.figures
	return nil
}

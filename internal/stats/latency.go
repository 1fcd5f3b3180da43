package stats

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Range and precision of all latencies. Two significant digits are what `artemis perf` keeps: a percentile is at most
// 1% above the true value. Mean and maximum are exact, they are kept beside the histogram.
const (
	// MaxLatency is the largest latency that a histogram can tell from others. Larger ones are recorded as this one and
	// counted in Counters.OutOfRange.
	MaxLatency = 24 * time.Hour

	significantDigits = 2
)

// Latency is a distribution of latencies in microseconds. The zero value is not usable. It is not safe for concurrent
// use.
type Latency struct {
	hist *hdrhistogram.Histogram
	sum  int64 // of all values, microseconds: 9.2e18 is enough for 2.5 million years of waiting
	max  int64
}

// NewLatency returns an empty distribution.
func NewLatency() *Latency {
	return &Latency{hist: hdrhistogram.New(1, MaxLatency.Microseconds(), significantDigits)}
}

// record adds one latency and tells whether it was within range: from 0 to MaxLatency. A value outside is recorded as
// the nearest one inside.
func (l *Latency) record(d time.Duration) (inRange bool) {
	us := d.Microseconds()
	inRange = true
	if us < 0 {
		us, inRange = 0, false
	} else if us > MaxLatency.Microseconds() {
		us, inRange = MaxLatency.Microseconds(), false
	}
	_ = l.hist.RecordValue(us) // cannot fail: us is within the histogram's range
	l.sum += us
	l.max = max(l.max, us)
	return inRange
}

// Record adds one latency; values below 0 or above [MaxLatency] are recorded as the nearest value inside.
func (l *Latency) Record(d time.Duration) { l.record(d) }

// Merge adds all values of other.
func (l *Latency) Merge(other *Latency) {
	if other == nil || other.Count() == 0 {
		return
	}
	l.hist.Merge(other.hist)
	l.sum += other.sum
	l.max = max(l.max, other.max)
}

// Reset removes all values.
func (l *Latency) Reset() {
	l.hist.Reset()
	l.sum, l.max = 0, 0
}

// Count returns the number of values.
func (l *Latency) Count() int64 { return l.hist.TotalCount() }

// Sum returns the exact sum of all values in microseconds.
func (l *Latency) Sum() int64 { return l.sum }

// Mean returns the exact mean in microseconds; 0 when there are no values.
func (l *Latency) Mean() float64 {
	if l.Count() == 0 {
		return 0
	}
	return float64(l.sum) / float64(l.Count())
}

// Max returns the exact maximum in microseconds; 0 when there are no values.
func (l *Latency) Max() int64 { return l.max }

// Percentile returns the value in microseconds that the given share of all values (0 to 100) does not exceed, as the
// upper end of its histogram bucket but never above Max; 0 when there are no values.
func (l *Latency) Percentile(p float64) int64 { return min(l.hist.ValueAtPercentile(p), l.max) }

// Bars calls visit for each histogram bucket that holds values, in ascending order: the bucket's upper end in
// microseconds and its count.
func (l *Latency) Bars(visit func(upTo, count int64)) {
	for _, bar := range l.hist.Distribution() {
		if bar.Count > 0 {
			visit(bar.To, bar.Count)
		}
	}
}

// Histogram returns a copy as an HdrHistogram, for log writers.
func (l *Latency) Histogram() *hdrhistogram.Histogram { return hdrhistogram.Import(l.hist.Export()) }

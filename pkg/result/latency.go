package result

import (
	"slices"
	"time"
)

// Latency is a distribution of latencies.
type Latency struct {
	// Count is the number of values.
	Count int64 `json:"count"`
	// Sum is the exact sum of all values: the mean is Sum / Count.
	Sum int64 `json:"sum"`
	// Max is the exact maximum; 0 without values.
	Max int64 `json:"max"`
	// Percentiles are missing without values, and where they are unknown: see [Merge].
	*Percentiles
	// Histogram has all values. It is missing in the rows of rows.jsonl.
	Histogram *Histogram `json:"histogram,omitempty"`
}

// Percentiles are the values that a share of all values does not exceed: at most 1% above the true values, since a
// histogram has two significant digits, and never above the maximum.
type Percentiles struct {
	// The value that 50, 90, 99, 99.9 and 99.99% of all values do not exceed.
	P50   int64 `json:"p50"`
	P90   int64 `json:"p90"`
	P99   int64 `json:"p99"`
	P999  int64 `json:"p999"`
	P9999 int64 `json:"p9999"`
}

// NewLatency returns an empty distribution.
func NewLatency() *Latency { return &Latency{Histogram: &Histogram{}} }

// Record adds one latency and reports whether it was within range: from 0 to [MaxLatency]. A value outside is recorded
// as the nearest one inside. The zero Latency is ready for use. Record does not renew the percentiles: see Seal.
func (l *Latency) Record(d time.Duration) (inRange bool) {
	us := d.Microseconds()
	inRange = us >= 0 && us <= MaxLatency
	us = min(max(us, 0), MaxLatency)
	if l.Histogram == nil {
		l.Histogram = &Histogram{}
	}
	l.Histogram.put(place(us), 1)
	l.Count++
	l.Sum += us
	l.Max = max(l.Max, us)
	return inRange
}

// Merge adds all values of other. If both have values and one has no histogram, the percentiles become unknown;
// otherwise see Seal.
func (l *Latency) Merge(other *Latency) {
	if other == nil || other.Count == 0 {
		return
	}
	first := l.Count == 0
	l.Percentiles = nil
	switch {
	case other.Histogram == nil:
		l.Histogram = nil
		if first && other.Percentiles != nil {
			l.Percentiles = new(*other.Percentiles)
		}
	case l.Histogram != nil:
		l.Histogram.Add(other.Histogram)
	case first:
		l.Histogram = &Histogram{}
		l.Histogram.Add(other.Histogram)
	}
	addTo(&l.Count, other.Count)
	addTo(&l.Sum, other.Sum)
	l.Max = max(l.Max, other.Max)
}

// Reset removes all values, but keeps the memory.
func (l *Latency) Reset() {
	if l.Count > 0 {
		l.Histogram.Reset()
		l.Count, l.Sum, l.Max, l.Percentiles = 0, 0, 0, nil
	}
}

// Merge adds the values of other, and the kinds that l does not have yet.
func (l *Latencies) Merge(other Latencies) {
	l.Expect(&other)
	for k, from := range other {
		if from != nil {
			l[k].Merge(from)
		}
	}
}

// Expect adds the kinds that other has, without values.
func (l *Latencies) Expect(other *Latencies) {
	for k, from := range other {
		if l[k] != nil || from == nil {
			continue
		}
		if l[k] = NewLatency(); from.Histogram == nil {
			l[k].Histogram = nil
		}
	}
}

// Copy returns latencies that share nothing with l.
func (l *Latencies) Copy() (c Latencies) {
	c.Merge(*l)
	return c
}

// Seal computes the percentiles of all latencies.
func (l *Latencies) Seal() {
	for _, latency := range l {
		if latency != nil {
			latency.percentiles()
		}
	}
}

// Mean returns the exact mean; 0 without values.
func (l *Latency) Mean() float64 {
	if l.Count == 0 {
		return 0
	}
	return float64(l.Sum) / float64(l.Count)
}

// Percentile returns the value that the share p of all values, from 0 to 100, does not exceed. It needs the histogram:
// it is 0 without one or without values.
func (l *Latency) Percentile(p float64) int64 {
	if l.Histogram == nil {
		return 0
	}
	return min(l.Histogram.Percentile(p), l.Max)
}

// percentiles recomputes the percentiles from the histogram, if there is one.
func (l *Latency) percentiles() {
	if l.Histogram == nil {
		return
	}
	l.Percentiles = nil
	if l.Count == 0 {
		return
	}
	if h := l.Histogram; h.octaves == nil { // equal distributions are equal
		slices.Sort(h.few[:h.count])
	}
	l.Percentiles = &Percentiles{
		P50: l.Percentile(50), P90: l.Percentile(90), P99: l.Percentile(99), P999: l.Percentile(99.9),
		P9999: l.Percentile(99.99),
	}
}

// add merges other, and renews the percentiles.
func (l *Latencies) add(other *Latencies) {
	l.Merge(*other)
	l.Seal()
}

package stats

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Range and precision of all latencies. Latencies have two significant digits, as in `artemis perf`: a percentile is at
// most 1% above the true value. Mean and maximum are exact, since they are kept beside the counts.
const (
	// MaxLatency is the largest latency of a distribution. Larger ones are recorded as this one and counted in
	// Counters.OutOfRange.
	MaxLatency = 24 * time.Hour

	significantDigits = 2
)

// The buckets of an HdrHistogram with two significant digits and 1 us as the lowest value: up to 255 us each value has
// its own bucket; from there on each octave has 128 of equal width.
const (
	octaveBits  = 7
	octaveSize  = 1 << octaveBits
	octaveCount = 31 // 128 << 30 us is above MaxLatency
)

// octave counts the values of one power of two. A count that passes 65,535 carries 65,536 over to Latency.spilled: two
// bytes per bucket, because thousands of workers have several distributions each, and most of their counts are small.
type octave [octaveSize]uint16

// octaveFull is the carry to Latency.spilled when a bucket overflows.
const octaveFull = 1 << 16

// octaves are the counts of all values; nil where none occurred.
type octaves [octaveCount]*octave

// fewValues is how many values a distribution holds one by one. With thousands of workers, each has fewer in a second.
const fewValues = 24

// Latency is a distribution of latencies in microseconds. The zero value is empty and ready for use. It allocates
// nothing for the first 24 values, and then a quarter of a KiB for each power of two that occurs, which Reset keeps:
// thousands of workers can have several distributions each.
//
// hdrhistogram-go only writes the logs: one of its histograms takes 32 KiB, and version 1.4.0 rounds the rank of a
// percentile to nearest instead of up, which makes the percentiles of few values too low.
//
// It is not safe for concurrent use.
type Latency struct {
	octaves *octaves          // nil while all values are in few
	spilled map[int]int64     // by place of the bucket: counts that are not in octaves
	few     [fewValues]uint16 // the places of the buckets of the values
	count   int64
	sum     int64 // of all values, microseconds: 9.2e18 is enough for 2.5 million years of waiting
	max     int64
}

// NewLatency returns an empty distribution.
func NewLatency() *Latency { return new(Latency) }

// place returns the bucket of a value from 0 to MaxLatency.
func place(us int64) int {
	shift := bits.Len64(uint64(us)>>(octaveBits+1)) & 63 // of the bucket's width; 0 up to 255 us
	return shift<<octaveBits + int(us>>shift)
}

// highest returns the largest value of a bucket.
func highest(place int) int64 {
	shift := max(0, place>>octaveBits-1)
	return (int64(place-shift<<octaveBits)+1)<<shift - 1
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
	l.put(place(us))
	l.sum += us
	l.max = max(l.max, us)
	return inRange
}

// put counts one value.
func (l *Latency) put(p int) {
	if l.octaves == nil {
		if l.count < fewValues {
			l.few[l.count] = uint16(p) //nolint:gosec // below octaveCount * octaveSize
			l.count++
			return
		}
		l.unfold()
	}
	l.bucket(p)
	l.count++
}

// unfold moves the values from few to octaves.
func (l *Latency) unfold() {
	if l.octaves != nil {
		return
	}
	l.octaves = new(octaves)
	for _, p := range l.few[:l.count] {
		l.bucket(int(p))
	}
}

// bucket adds one to a bucket of the octaves.
func (l *Latency) bucket(p int) {
	o := l.octaves.of(p >> octaveBits)
	if o[p%octaveSize]++; o[p%octaveSize] == 0 {
		l.spill(p, octaveFull)
	}
}

// of returns the octave of a number.
func (o *octaves) of(i int) *octave {
	if o[i] == nil {
		o[i] = new(octave)
	}
	return o[i]
}

func (l *Latency) spill(place int, n int64) {
	if l.spilled == nil {
		l.spilled = map[int]int64{}
	}
	l.spilled[place] += n
}

// Record adds one latency; values below 0 or above [MaxLatency] are recorded as the nearest value inside.
func (l *Latency) Record(d time.Duration) { l.record(d) }

// Merge adds all values of other.
func (l *Latency) Merge(other *Latency) {
	if other == nil || other.count == 0 {
		return
	}
	l.sum += other.sum
	l.max = max(l.max, other.max)
	if other.octaves == nil {
		for _, p := range other.few[:other.count] {
			l.put(int(p))
		}
		return
	}
	l.unfold()
	l.count += other.count
	for i, from := range other.octaves {
		if from == nil {
			continue
		}
		to := l.octaves.of(i)
		for j, n := range from {
			if to[j] += n; to[j] < n {
				l.spill(i<<octaveBits+j, octaveFull)
			}
		}
	}
	for p, n := range other.spilled {
		l.spill(p, n)
	}
}

// Reset removes all values, but keeps the memory.
func (l *Latency) Reset() {
	if l.count == 0 {
		return
	}
	if l.octaves != nil {
		for _, o := range l.octaves {
			if o != nil {
				*o = octave{}
			}
		}
	}
	l.spilled, l.count, l.sum, l.max = nil, 0, 0, 0
}

// Count returns the number of values.
func (l *Latency) Count() int64 { return l.count }

// Sum returns the exact sum of all values in microseconds.
func (l *Latency) Sum() int64 { return l.sum }

// Mean returns the exact mean in microseconds; 0 when there are no values.
func (l *Latency) Mean() float64 {
	if l.count == 0 {
		return 0
	}
	return float64(l.sum) / float64(l.count)
}

// Max returns the exact maximum in microseconds; 0 when there are no values.
func (l *Latency) Max() int64 { return l.max }

// Percentile returns the value in microseconds that the given share of all values (0 to 100) does not exceed: the value
// of rank ceil(p n / 100), as in Java's HdrHistogram, so that the 99% of 60 values is the largest of them. It is the
// upper end of that value's bucket but never above Max; 0 when there are no values.
func (l *Latency) Percentile(p float64) int64 {
	if l.count == 0 {
		return 0
	}
	// One ulp less: a product that should be a whole number may come out slightly larger and be rounded up to the next
	// rank.
	p = math.Nextafter(min(max(p, 0), 100), math.Inf(-1))
	rank := max(1, int64(math.Ceil(p*float64(l.count)/100)))
	value := l.max
	var seen int64
	l.each(func(place int, n int64) bool {
		if seen += n; seen >= rank {
			value = min(highest(place), l.max)
		}
		return seen < rank
	})
	return value
}

// each calls visit for each bucket that holds values, in ascending order, until it returns false.
func (l *Latency) each(visit func(place int, n int64) bool) {
	if l.octaves == nil {
		few := l.few
		slices.Sort(few[:l.count])
		for i := 0; i < int(l.count); {
			n := i
			for n < int(l.count) && few[n] == few[i] {
				n++
			}
			if !visit(int(few[i]), int64(n-i)) {
				return
			}
			i = n
		}
		return
	}
	for i, o := range l.octaves {
		if o == nil {
			continue
		}
		for j, n := range o {
			p := i<<octaveBits + j
			total := int64(n)
			if l.spilled != nil {
				total += l.spilled[p]
			}
			if total > 0 && !visit(p, total) {
				return
			}
		}
	}
}

// Bars calls visit for each bucket that holds values, in ascending order: the bucket's upper end in microseconds and
// its count.
func (l *Latency) Bars(visit func(upTo, count int64)) {
	l.each(func(place int, n int64) bool {
		visit(highest(place), n)
		return true
	})
}

// Histogram returns the values as an HdrHistogram, for log writers.
func (l *Latency) Histogram() *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, MaxLatency.Microseconds(), significantDigits)
	l.Bars(func(upTo, count int64) { _ = h.RecordValues(upTo, count) }) // within its range
	return h
}

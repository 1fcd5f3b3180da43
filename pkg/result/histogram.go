package result

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The geometry of all histograms of a result: values from 1 microsecond to 24 hours with two significant digits.
const (
	lowestValue = 1
	// MaxLatency is the largest value of a histogram, in microseconds: 24 hours.
	MaxLatency        = 24 * 60 * 60 * 1_000_000
	significantDigits = 2
	octaveBits        = 7 // each power of two has 128 buckets

	// maxEncoded bounds the text of a histogram: a histogram with all of its 3,700 buckets in use takes less than half of
	// it.
	maxEncoded = 64 << 10
)

// Histogram is an HdrHistogram of latencies in microseconds, from 0 to [MaxLatency] with two significant digits. Its
// text is HdrHistogram's V2 compressed encoding in base64. Histograms add up without loss. The zero value is empty.
//
// It is not safe for concurrent use.
type Histogram struct {
	bars  []Bar // in ascending order
	count int64
}

// Bar is a bucket of a histogram: Count values up to UpTo, above UpTo of the bucket before.
type Bar struct{ UpTo, Count int64 }

// bucket returns the largest value of the bucket that holds a value.
func bucket(us int64) int64 {
	us = min(max(us, 0), MaxLatency)
	shift := bits.Len64(uint64(us)>>(octaveBits+1)) & 63 //nolint:gosec // not negative
	return (us>>shift+1)<<shift - 1
}

// Record adds count values. A value outside the range is recorded as the nearest value inside. Record ignores a count
// that is not above zero, or that would let the sum of all counts overflow an int64.
func (h *Histogram) Record(us, count int64) {
	if count <= 0 || count > math.MaxInt64-h.count {
		return
	}
	h.count += count
	upTo := bucket(us)
	i, found := slices.BinarySearchFunc(h.bars, upTo, func(b Bar, upTo int64) int { return cmp.Compare(b.UpTo, upTo) })
	if found {
		h.bars[i].Count += count
		return
	}
	h.bars = slices.Insert(h.bars, i, Bar{upTo, count})
}

// Count returns the number of values.
func (h *Histogram) Count() int64 { return h.count }

// Bars returns the buckets that hold values, in ascending order. The caller must not change them.
func (h *Histogram) Bars() []Bar { return h.bars }

// Percentile returns the value of rank ceil(p n / 100) as the upper end of its bucket; 0 without values. p is from 0 to
// 100.
func (h *Histogram) Percentile(p float64) int64 {
	// One ulp less: a product that should be a whole number may come out slightly larger and be rounded up to the next
	// rank.
	p = math.Nextafter(min(max(p, 0), 100), math.Inf(-1))
	rank := max(1, int64(math.Ceil(p*float64(h.count)/100)))
	var seen int64
	for _, b := range h.bars {
		if seen += b.Count; seen >= rank {
			return b.UpTo
		}
	}
	return 0
}

// add adds the values of other. The sum of the counts must fit an int64.
func (h *Histogram) add(other *Histogram) {
	sum := make([]Bar, 0, max(len(h.bars), len(other.bars)))
	a, b := h.bars, other.bars
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].UpTo < b[0].UpTo:
			sum, a = append(sum, a[0]), a[1:]
		case a[0].UpTo > b[0].UpTo:
			sum, b = append(sum, b[0]), b[1:]
		default:
			sum = append(sum, Bar{a[0].UpTo, a[0].Count + b[0].Count})
			a, b = a[1:], b[1:]
		}
	}
	h.bars = append(append(sum, a...), b...)
	h.count += other.count
}

func (h *Histogram) clone() *Histogram {
	if h == nil {
		return nil
	}
	return &Histogram{bars: slices.Clone(h.bars), count: h.count}
}

// hdr returns the histogram as the library's type.
func (h *Histogram) hdr() *hdrhistogram.Histogram {
	full := hdrhistogram.New(lowestValue, MaxLatency, significantDigits)
	for _, b := range h.bars {
		_ = full.RecordValues(b.UpTo, b.Count) // within its range
	}
	return full
}

// MarshalText returns HdrHistogram's V2 compressed encoding in base64.
func (h *Histogram) MarshalText() ([]byte, error) {
	return h.hdr().Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// UnmarshalText reads HdrHistogram's V2 compressed encoding in base64. It refuses ranges and precisions other than
// those of a result, before it allocates memory for them.
func (h *Histogram) UnmarshalText(text []byte) error {
	var d decoder
	return d.decode(h, text)
}

// highest returns the largest value of the bucket at a place of HdrHistogram's counts.
func highest(place int) int64 {
	shift := max(0, place>>octaveBits-1)
	return (int64(place-shift<<octaveBits)+1)<<shift - 1
}

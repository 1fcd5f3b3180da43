package result

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The geometry of all histograms: values from 1 microsecond to 24 hours with two significant digits, as in `artemis
// perf`. Up to 255 us each value has its own bucket; from there on each octave has 128 buckets of equal width.
const (
	lowestValue = 1
	// MaxLatency is the largest value of a histogram, in microseconds: 24 hours.
	MaxLatency        = 24 * 60 * 60 * 1_000_000
	significantDigits = 2
	octaveBits        = 7
	octaveSize        = 1 << octaveBits
	octaveCount       = 31 // 128 << 30 us is above MaxLatency

	// maxEncoded bounds the text of a histogram: a histogram with all of its 3,700 buckets in use takes less than half of
	// it.
	maxEncoded = 64 << 10
)

// octave counts the values of one power of two. A count that passes 65,535 carries 65,536 over to Histogram.spilled:
// two bytes per bucket, because thousands of workers have several histograms each, and most of their counts are small.
type octave [octaveSize]uint16

// octaveFull is the carry to Histogram.spilled when a bucket overflows.
const octaveFull = 1 << 16

// fewValues is the number of values that a histogram holds one by one. With thousands of workers, each has fewer in a
// second.
const fewValues = 24

// Histogram is an HdrHistogram of latencies in microseconds, from 0 to [MaxLatency] with two significant digits. Its
// text is HdrHistogram's V2 compressed encoding in base64. Histograms add up without loss. The zero value is empty and
// ready for use. It allocates nothing for the first 24 values, and then a quarter of a KiB for each power of two that
// occurs, which Reset keeps.
//
// hdrhistogram-go only writes: one of its histograms takes 32 KiB, and version 1.4.0 rounds the rank of a percentile to
// nearest instead of up, which makes the percentiles of few values too low.
//
// It is not safe for concurrent use.
type Histogram struct {
	octaves *[octaveCount]*octave // nil while all values are in few
	spilled map[int]int64         // by place of the bucket: counts that are not in octaves
	few     [fewValues]uint16     // the places of the buckets of the values
	count   int64
}

// Bar is a bucket of a histogram: Count values up to UpTo, above UpTo of the bucket before.
type Bar struct{ UpTo, Count int64 }

// place returns the bucket of a value. A value outside the range has the nearest bucket inside.
func place(us int64) int {
	us = min(max(us, 0), MaxLatency)
	shift := bits.Len64(uint64(us)>>(octaveBits+1)) & 63 // of the bucket's width; 0 up to 255 us
	return shift<<octaveBits + int(us>>shift)
}

// highest returns the largest value of a bucket.
func highest(place int) int64 {
	shift := max(0, place>>octaveBits-1)
	return (int64(place-shift<<octaveBits)+1)<<shift - 1
}

// Record adds count values. A value outside the range is recorded as the nearest value inside. Record ignores a count
// that is not above zero, or that would let the sum of all counts overflow an int64.
func (h *Histogram) Record(us, count int64) {
	if count > 0 && count <= math.MaxInt64-h.count {
		h.put(place(us), count)
	}
}

// put counts n values of a bucket.
func (h *Histogram) put(place int, n int64) {
	if h.octaves != nil && n == 1 { // the usual case
		if o := h.octaves[place>>octaveBits]; o != nil && o[place%octaveSize] < octaveFull-1 {
			o[place%octaveSize]++
			h.count++
			return
		}
	}
	if h.octaves == nil {
		if n <= fewValues-h.count {
			for range n {
				h.few[h.count] = uint16(place) //nolint:gosec // below octaveCount * octaveSize
				h.count++
			}
			return
		}
		h.unfold()
	}
	h.bucket(place, n)
	h.count += n
}

// unfold moves the values from few to octaves.
func (h *Histogram) unfold() {
	if h.octaves != nil {
		return
	}
	h.octaves = new([octaveCount]*octave)
	for _, p := range h.few[:h.count] {
		h.bucket(int(p), 1)
	}
	h.few = [fewValues]uint16{}
}

// bucket adds n to a bucket of the octaves.
func (h *Histogram) bucket(place int, n int64) {
	o := h.octaves[place>>octaveBits]
	if o == nil {
		o = new(octave)
		h.octaves[place>>octaveBits] = o
	}
	sum := int64(o[place%octaveSize]) + n%octaveFull
	o[place%octaveSize] = uint16(sum % octaveFull) //nolint:gosec // below octaveFull
	if more := n - n%octaveFull + sum - sum%octaveFull; more > 0 {
		if h.spilled == nil {
			h.spilled = map[int]int64{}
		}
		h.spilled[place] += more
	}
}

// Count returns the number of values.
func (h *Histogram) Count() int64 { return h.count }

// Add adds all values of other.
func (h *Histogram) Add(other *Histogram) {
	if other.octaves == nil {
		for _, p := range other.few[:other.count] {
			h.put(int(p), 1)
		}
		return
	}
	other.each(func(place int, n int64) bool {
		if n <= math.MaxInt64-h.count {
			h.put(place, n)
		}
		return true
	})
}

// Reset removes all values, but keeps the memory.
func (h *Histogram) Reset() {
	if h.octaves != nil && h.count > 0 {
		for _, o := range h.octaves {
			if o != nil {
				*o = octave{}
			}
		}
	}
	h.spilled, h.count = nil, 0
}

// each calls visit for each bucket that holds values, in ascending order, until it returns false.
func (h *Histogram) each(visit func(place int, n int64) bool) {
	if h.octaves == nil {
		few := h.few
		slices.Sort(few[:h.count])
		for i := 0; i < int(h.count); {
			n := i
			for n < int(h.count) && few[n] == few[i] {
				n++
			}
			if !visit(int(few[i]), int64(n-i)) {
				return
			}
			i = n
		}
		return
	}
	for i, o := range h.octaves {
		if o == nil {
			continue
		}
		for j, n := range o {
			p := i<<octaveBits + j
			total := int64(n)
			if h.spilled != nil {
				total += h.spilled[p]
			}
			if total > 0 && !visit(p, total) {
				return
			}
		}
	}
}

// Bars returns the buckets that hold values, in ascending order.
func (h *Histogram) Bars() (bars []Bar) {
	h.each(func(place int, n int64) bool {
		bars = append(bars, Bar{highest(place), n})
		return true
	})
	return bars
}

// Percentile returns the value of rank ceil(p n / 100), as Java's HdrHistogram does, so that the 99% of 60 values is
// the largest of them: the upper end of its bucket; 0 without values. p is from 0 to 100.
func (h *Histogram) Percentile(p float64) (value int64) {
	// One ulp less: a product that should be a whole number may come out slightly larger and be rounded up to the next
	// rank.
	p = math.Nextafter(min(max(p, 0), 100), math.Inf(-1))
	rank := max(1, int64(math.Ceil(p*float64(h.count)/100)))
	var seen int64
	h.each(func(place int, n int64) bool {
		if seen += n; seen >= rank {
			value = highest(place)
		}
		return seen < rank
	})
	return value
}

// HDR returns the histogram as the library's type, for log writers.
func (h *Histogram) HDR() *hdrhistogram.Histogram {
	full := hdrhistogram.New(lowestValue, MaxLatency, significantDigits)
	for _, b := range h.Bars() {
		_ = full.RecordValues(b.UpTo, b.Count) // within its range
	}
	return full
}

// MarshalText returns HdrHistogram's V2 compressed encoding in base64.
func (h *Histogram) MarshalText() ([]byte, error) {
	return h.HDR().Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// UnmarshalText reads HdrHistogram's V2 compressed encoding in base64. It refuses other ranges and precisions than a
// result's, before it allocates memory for them.
func (h *Histogram) UnmarshalText(text []byte) error {
	var d decoder
	return d.decode(h, text)
}

// histograms reads the lines of latencies.hdr beside the rows: a line for each latency of each row.
type histograms struct {
	result *Result
	summed bool       // the result is the sum of its rows: there is no result.json
	visit  func(*Row) // called with each row, which then loses its histograms; nil keeps them
	next   int        // the row after the one whose lines are wanted
	wanted []wanted

	decoder decoder
}

// wanted is a line that must follow.
type wanted struct {
	tag string
	row *Latency
}

// advance proceeds to the next row with latencies, if there is one.
func (h *histograms) advance() {
	rows := h.result.Rows
	for len(h.wanted) == 0 {
		if h.next > 0 {
			h.leave(&rows[h.next-1])
		}
		if h.next == len(rows) {
			return
		}
		row := &rows[h.next]
		h.next++
		prefix := ""
		if row.Phase == Warmup {
			prefix = warmupTag
		}
		h.want(prefix, &row.Latencies)
		if row.Leftover != nil {
			h.want(warmupTag, row.Leftover)
		}
	}
}

// leave adds what was read of a row to the sums, visits the row, and drops its histograms.
func (h *histograms) leave(row *Row) {
	if h.summed && row.Phase != Warmup {
		read := row.Latencies.kept()
		h.result.addLatencies(row.Step, &read)
	}
	if h.visit != nil {
		h.visit(row)
		*row = *row.Bare()
	}
}

// want records the lines that the latencies of a row require.
func (h *histograms) want(prefix string, l *Latencies) {
	for _, k := range kinds {
		if l[k.Kind] == nil {
			continue
		}
		h.wanted = append(h.wanted, wanted{prefix + k.Tag, l[k.Kind]})
	}
}

// readLine reads the next line of the log. Lines after the last row belong to a row that was never written.
func (h *histograms) readLine(text string) error {
	if len(h.wanted) == 0 {
		return errEnough
	}
	tag, values, err := h.parse(text)
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(tag, warmupTag)
	if !slices.ContainsFunc(kinds, func(k KindInfo) bool { return k.Tag == name }) {
		return nil // of a later perfmq
	}
	w := h.wanted[0]
	if tag != w.tag {
		return fmt.Errorf("the latency is %q; the row in %s has %q", tag, RowsFile, w.tag)
	}
	read := *w.row
	read.Histogram = values
	if err := read.check(); err != nil {
		return err
	}
	w.row.Histogram = values
	if h.wanted = h.wanted[1:]; len(h.wanted) == 0 {
		h.advance()
	}
	return nil
}

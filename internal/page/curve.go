package page

import (
	"math"
	"slices"
	"strconv"

	"github.com/perfmq/perfmq/pkg/result"
)

// number64 is a number for a chart: four significant digits exceed the resolution of a screen; null means no value.
type number64 float64

// MarshalJSON writes the number in its shortest form.
func (n number64) MarshalJSON() ([]byte, error) {
	v := float64(n)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return []byte("null"), nil
	case math.Abs(v) >= 1000:
		return strconv.AppendFloat(nil, math.Round(v), 'f', -1, 64), nil
	default:
		v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
		return strconv.AppendFloat(nil, v, 'f', -1, 64), nil
	}
}

// millis converts microseconds to milliseconds.
func millis(us int64) number64 { return number64(math.Round(float64(us) / 1000)) }

// curve is a distribution by percentile, as HdrHistogram draws it: Value (microseconds) at 1 / (1 - p) of Rank. The
// last one is the maximum, at the number of values.
type curve struct {
	Rank  []number64 `json:"rank"`
	Value []number64 `json:"value"`
}

// curves are the curve of the measured messages and, if there was a warm-up, the curve that includes it.
type curves struct {
	Measured *curve `json:"measured,omitempty"`
	All      *curve `json:"all,omitempty"`
}

// ranksPerDecade is the number of points from 90% to 99%. All curves have the same ranks, so that they can be compared.
const ranksPerDecade = 20

func curvesOf(measured, warmup *result.Latency) (c curves, ok bool) {
	if measured != nil && measured.Histogram != nil && measured.Count > 0 {
		c.Measured = newCurve(measured.Histogram.Bars(), measured.Count, measured.Max)
	}
	if warmup != nil && warmup.Histogram != nil && warmup.Count > 0 {
		bars, count, longest := warmup.Histogram.Bars(), warmup.Count, warmup.Max
		if measured != nil && measured.Histogram != nil {
			bars, count, longest = joined(bars, measured.Histogram.Bars()), count+measured.Count, max(longest, measured.Max)
		}
		c.All = newCurve(bars, count, longest)
	}
	return c, c.Measured != nil || c.All != nil
}

// joined merges two sorted lists of bars.
func joined(a, b []result.Bar) []result.Bar {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(a, b result.Bar) int { return int(a.UpTo - b.UpTo) })
	return all
}

func newCurve(bars []result.Bar, count, longest int64) *curve {
	c := &curve{}
	var seen int64
	next := 0
	for i := 0; ; i++ {
		rank := math.Pow(10, float64(i)/ranksPerDecade)
		if rank >= float64(count) {
			break
		}
		// The value at the share 1 - 1/rank is that of message number count - count/rank, rounded up.
		wanted := max(1, int64(math.Ceil(float64(count)-float64(count)/rank-1e-9)))
		for next < len(bars) && seen+bars[next].Count < wanted {
			seen += bars[next].Count
			next++
		}
		if next == len(bars) {
			break
		}
		c.Rank = append(c.Rank, number64(rank))
		c.Value = append(c.Value, number64(min(bars[next].UpTo, longest)))
	}
	c.Rank, c.Value = append(c.Rank, number64(count)), append(c.Value, number64(longest))
	return c
}

// pile is the rate against the number of messages at the broker.
type pile struct {
	// Left means that the backlog was not read from the broker: it counts the messages that this run has left there.
	Left      bool       `json:"left"`
	Backlog   []number64 `json:"backlog"`
	Completed *column    `json:"completed,omitempty"`
	Received  *column    `json:"received,omitempty"`
}

// Backlogs are grouped into at most maxBins bins of equal width. Below leastBacklog messages there is no backlog; fewer
// than leastBins bins make no chart.
const (
	maxBins      = 60
	leastBacklog = 100
	leastBins    = 3
)

// pile returns nil without a backlog, or with too few bins.
func (r *Run) pile() *pile {
	points, backlogs, left := r.backlogs()
	if len(points) == 0 {
		return nil
	}
	most := slices.Max(backlogs)
	if most < leastBacklog {
		return nil
	}
	width := binWidth(most)
	completed, received := make([]bin, int(most/width)+1), make([]bin, int(most/width)+1)
	for i, p := range points {
		at := int(backlogs[i] / width)
		sends, receives := r.does(p.step)
		if receives {
			received[at].add(&p.received, p.length)
		}
		if sends && p.phase != result.Drain { // no messages are sent during a drain
			completed[at].add(&p.completed, p.length)
		}
	}
	out := &pile{Left: left}
	if r.sends() {
		out.Completed = &column{}
	}
	if r.receives() {
		out.Received = &column{}
	}
	for i := range received {
		if completed[i].length+received[i].length == 0 {
			continue
		}
		out.Backlog = append(out.Backlog, number64((float64(i)+0.5)*width))
		out.Completed.bin(&completed[i])
		out.Received.bin(&received[i])
	}
	if len(out.Backlog) < leastBins {
		return nil
	}
	return out
}

// bin is the rate at similar backlogs.
type bin struct {
	length int64
	rate   rate
}

func (b *bin) add(r *rate, length int64) {
	if b.length == 0 {
		b.rate.extent = nothing()
	}
	b.length += length
	b.rate.count += r.count
	b.rate.extent.join(r.extent)
}

// bin adds the rate of a bin; NaN for an empty one.
func (c *column) bin(b *bin) {
	switch {
	case c == nil:
	case b.length == 0:
		c.Value, c.Low, c.High = append(c.Value, number64(math.NaN())), append(c.Low, number64(math.NaN())),
			append(c.High, number64(math.NaN()))
	default:
		c.Value = append(c.Value, number64(perSecond(b.rate.count, b.length)))
		c.Low, c.High = append(c.Low, number64(b.rate.extent.low)), append(c.High, number64(b.rate.extent.high))
	}
}

// backlogs returns the points with a known backlog, and the backlogs: as read from the broker or, for a run that only
// sends, the messages completed so far (left is true). Warm-ups are omitted.
func (r *Run) backlogs() (points []*point, backlogs []float64, left bool) {
	var completed float64
	left = r.sends() && !r.receives()
	for i := range r.series.points {
		if r.series.points[i].hasBacklog {
			left = false
		}
	}
	for i := range r.series.points {
		p := &r.series.points[i]
		completed += float64(p.completed.count)
		if p.phase == result.Warmup || !left && !p.hasBacklog || left && p.phase == result.Drain {
			continue
		}
		points = append(points, p)
		if left {
			backlogs = append(backlogs, completed)
		} else {
			backlogs = append(backlogs, p.backlog)
		}
	}
	return points, backlogs, left
}

// binWidth returns the least width of the form 1, 2 or 5 times a power of ten with at most maxBins bins up to most.
func binWidth(most float64) float64 {
	for width := 1.0; ; width *= 10 {
		for _, times := range []float64{1, 2, 5} {
			if most/(times*width) < maxBins {
				return times * width
			}
		}
	}
}

package page

import (
	"math"
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

// distribution is a latency by percentile, as HdrHistogram draws it: Value (microseconds) at 1 / (1 - p) of Rank. The
// last one is the maximum, at the number of values.
type distribution struct {
	Rank  []number64 `json:"rank"`
	Value []number64 `json:"value"`
}

// ranksPerDecade is the number of points from 90% to 99%. All curves have the same ranks, so that they can be compared.
const ranksPerDecade = 20

// distributionOf returns nil if the latency has no histogram.
func distributionOf(l *result.Latency) *distribution {
	if l == nil || l.Histogram == nil || l.Count == 0 {
		return nil
	}
	c, bars, count, longest := &distribution{}, l.Histogram.Bars(), l.Count, l.Max
	var seen int64
	next := 0
	for i := 0; ; i++ {
		rank := math.Pow(10, float64(i)/ranksPerDecade)
		if rank >= float64(count) {
			break
		}
		// The value at the share 1 - 1/rank is the value of message number count - count/rank, rounded up.
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

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
	Marks []number64 `json:"marks"` // 50%, 99% and 99.9%
}

// ranksPerDecade is the number of points from 90% to 99%. All curves have the same ranks, so that they can be compared.
const ranksPerDecade = 20

// distributionOf returns nil if the latency has no histogram.
func distributionOf(l *result.Latency) *distribution {
	if l == nil || l.Histogram == nil || l.Count == 0 {
		return nil
	}
	c := &distribution{}
	for _, p := range []float64{50, 99, 99.9} {
		c.Marks = append(c.Marks, number64(l.Percentile(p)))
	}
	for i := 0; ; i++ {
		rank := math.Pow(10, float64(i)/ranksPerDecade)
		if rank >= float64(l.Count) {
			break
		}
		c.Rank = append(c.Rank, number64(rank))
		c.Value = append(c.Value, number64(l.Percentile(100-100/rank)))
	}
	c.Rank, c.Value = append(c.Rank, number64(l.Count)), append(c.Value, number64(l.Max))
	return c
}

// maxColumns is the maximum number of columns of a heat map.
const maxColumns = 64

// buckets counts latencies: bucket i has those up to 2^(i/8) microseconds, and above the bucket before.
type buckets map[int]int64

func (b buckets) add(h *result.Histogram) {
	for _, bar := range h.Bars() {
		b[int(math.Ceil(8*math.Log2(float64(max(1, bar.UpTo)))))] += bar.Count
	}
}

// heat counts the latencies of a kind by time and size.
type heat struct {
	Width   int64     `json:"width"` // of a column, in microseconds
	Columns []buckets `json:"columns"`
}

func (h *heat) add(row *result.Row, l *result.Latency) {
	if l == nil || l.Count == 0 || l.Histogram == nil { // the last row of a killed run may have none
		return
	}
	h.Width = max(h.Width, 1_000_000)
	middle := max(0, row.Elapsed-row.Length/2)
	for middle/h.Width >= maxColumns {
		h.halve()
	}
	for int64(len(h.Columns)) <= middle/h.Width {
		h.Columns = append(h.Columns, buckets{})
	}
	h.Columns[middle/h.Width].add(l.Histogram)
}

// halve joins the columns in pairs.
func (h *heat) halve() {
	before := h.Columns
	h.Columns, h.Width = nil, 2*h.Width
	for i, column := range before {
		if i%2 == 0 {
			h.Columns = append(h.Columns, column)
		}
		for bucket, n := range column {
			if i%2 == 1 {
				h.Columns[i/2][bucket] += n
			}
		}
	}
}

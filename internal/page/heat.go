package page

import (
	"math"

	"github.com/perfmq/perfmq/pkg/result"
)

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

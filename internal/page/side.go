package page

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/result"
)

// maxSeries is the maximum number of a broker's chosen series on a page: the first by name.
const maxSeries = 32

// sideData is a figure of the broker's side as a curve.
type sideData struct {
	column
	Name string `json:"name"`
	// Chart is the chart of the curve, Unit the unit of its values.
	Chart string `json:"chart"`
	Unit  string `json:"unit"`
}

// sideFigure is a figure of the broker's side. value returns an amount and its time, whose quotient is drawn, or a
// state with time 0.
type sideFigure struct {
	name, chart, unit string
	value             func(*result.BrokerUse) (amount, time float64, known bool)
}

// sideFigures returns the figures of the charts. Bytes per microsecond are MB/s.
func sideFigures() []sideFigure {
	type use = result.BrokerUse
	return []sideFigure{
		{"process", "cores", "cores", func(u *use) (float64, float64, bool) { return flow(u.CPU, 1, u.CPUSpan) }},
		{"garbage collection", "shares", "%", func(u *use) (float64, float64,
			bool,
		) {
			return flow(u.CollectionTime, 100, u.Span)
		}},
		{"busiest disk", "shares", "%", func(u *use) (float64, float64, bool) { return level(u.DiskBusy, 100) }},
		{"memory", "memory", "MB", func(u *use) (float64, float64, bool) { return level(u.Memory, 1e-6) }},
		{"heap", "memory", "MB", func(u *use) (float64, float64, bool) { return level(u.Heap, 1e-6) }},
		{"disk read", "bytes", "MB/s", func(u *use) (float64, float64, bool) { return flow(u.DiskRead, 1, u.Span) }},
		{"disk written", "bytes", "MB/s", func(u *use) (float64, float64, bool) { return flow(u.DiskWritten, 1, u.Span) }},
		{"network in", "bytes", "MB/s", func(u *use) (float64, float64, bool) { return flow(u.NetIn, 1, u.Span) }},
		{"network out", "bytes", "MB/s", func(u *use) (float64, float64, bool) { return flow(u.NetOut, 1, u.Span) }},
		{"loopback", "bytes", "MB/s", func(u *use) (float64, float64, bool) { return flow(u.Loopback, 1, u.Span) }},
		{"load average", "others", "", func(u *use) (float64, float64, bool) { return level(u.Load, 1) }},
		{"threads", "others", "", func(u *use) (float64, float64, bool) { return level(u.Threads, 1) }},
		{"open files", "others", "", func(u *use) (float64, float64, bool) { return level(u.Files, 1) }},
		{"errors in the log", "others", "/s", func(u *use) (float64, float64, bool) { return flow(u.Errors, 1e6, u.Span) }},
		{"warnings in the log", "others", "/s", func(u *use) (float64, float64,
			bool,
		) {
			return flow(u.Warnings, 1e6, u.Span)
		}},
	}
}

// flow returns an amount and its time.
func flow(n *uint64, times float64, span int64) (amount, time float64, is bool) {
	if n == nil || span <= 0 {
		return 0, 0, false
	}
	return times * float64(*n), float64(span), true
}

// level returns a state: a value with time 0.
func level[N uint64 | float64](n *N, times float64) (amount, time float64, is bool) {
	if n == nil {
		return 0, 0, false
	}
	return times * float64(*n), 0, true
}

// sidePoint is a figure during a point.
type sidePoint struct {
	amount, time float64
	extent       extent // range over the rows
}

// value returns the average of an amount over its time, or the highest value of a state.
func (s *sidePoint) value() float64 {
	switch {
	case !s.extent.known():
		return math.NaN()
	case s.time > 0:
		return s.amount / s.time
	default:
		return s.extent.high
	}
}

// sidePoints returns the figures of a row by name; names of series begin with =.
func sidePoints(u *result.BrokerUse) map[string]sidePoint {
	if u == nil {
		return nil
	}
	points := map[string]sidePoint{}
	for _, f := range sideFigures() {
		if amount, time, is := f.value(u); is {
			p := sidePoint{amount, time, extent{amount, amount}}
			if time > 0 {
				p.extent = extent{amount / time, amount / time}
			}
			points[f.name] = p
		}
	}
	for i, name := range slices.Sorted(maps.Keys(u.Series)) {
		if i == maxSeries {
			break
		}
		points["="+name] = sidePoint{extent: extent{u.Series[name], u.Series[name]}}
	}
	return points
}

// joinSides joins the figures of two points. It changes neither a nor b.
func joinSides(a, b map[string]sidePoint) map[string]sidePoint {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	sum := maps.Clone(a)
	for name, next := range b {
		p, is := sum[name]
		if !is {
			p.extent = nothing()
		}
		p.amount, p.time = p.amount+next.amount, p.time+next.time
		p.extent.join(next.extent)
		sum[name] = p
	}
	return sum
}

// side returns the curves of the broker's side.
func (r *Run) side() (list []sideData) {
	seen := map[string]bool{}
	for i := range r.series.points {
		for name := range r.series.points[i].side {
			seen[name] = true
		}
	}
	curve := func(name string, d sideData) {
		for i := range r.series.points {
			p, is := r.series.points[i].side[name]
			if !is {
				p.extent = nothing()
			}
			d.Value = append(d.Value, number64(p.value()))
			if r.series.span > 0 {
				d.Low, d.High = append(d.Low, number64(p.extent.low)), append(d.High, number64(p.extent.high)) // infinite: none
			}
		}
		list = append(list, d)
	}
	for _, f := range sideFigures() {
		if seen[f.name] {
			curve(f.name, sideData{Name: f.name, Chart: f.chart, Unit: f.unit})
		}
	}
	added := 0
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		if name, is := strings.CutPrefix(key, "="); is && added < maxSeries {
			curve(key, sideData{Name: safetext.Line(name), Chart: "others"})
			added++
		}
	}
	return list
}

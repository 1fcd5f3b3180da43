package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// figure is a curve over time in one of the charts of assets/page.js, with its value in a row; nil if unknown.
type figure struct {
	chart, name, unit string
	value             *value
}

// value is a figure during a point: an amount and its time (the quotient is drawn), or a state with time 0.
type value struct {
	amount, time float64
	low, high    float64 // of the states, or of the quotients of full seconds: infinite if there are none
}

// flow is an amount in a time.
func flow[N uint64 | int64](n *N, times float64, span int64) *value {
	if n == nil || span <= 0 {
		return nil
	}
	v := value{times * float64(*n), float64(span), math.Inf(1), math.Inf(-1)}
	if span >= stats.FullSecond.Microseconds() {
		v.low, v.high = v.amount/v.time, v.amount/v.time
	}
	return &v
}

// level is a state.
func level[N uint64 | int64 | float64](n *N, times float64) *value {
	if n == nil {
		return nil
	}
	v := times * float64(*n)
	return &value{low: v, high: v}
}

// drawn is the average of an amount over its time, or the highest state; NaN if the time is too short for a rate.
func (v *value) drawn() float64 {
	switch {
	case v.time == 0:
		return v.high
	case v.time < shortest:
		return math.NaN()
	}
	return v.amount / v.time
}

// figures returns the figures of all charts, with their values in a row. Bytes per microsecond are MB/s.
func figures(r *result.Row) []figure {
	var completed, received, sent, inFlight *uint64
	var machine *int64
	if p := r.Producers; p != nil {
		completed, sent, inFlight = &p.Completed, &p.Sent, &r.InFlight
	}
	if c := r.Consumers; c != nil {
		received = &c.Received
	}
	if r.Tester.MachineAll > 0 {
		machine = &r.Tester.MachineBusy
	}
	list := []figure{
		{"throughput", "completed", "/s", flow(completed, 1e6, r.Length)},
		{"throughput", "received", "/s", flow(received, 1e6, r.Length)},
		{"throughput", "sent", "/s", flow(sent, 1e6, r.Length)},
		{"waiting", "in flight", "", level(inFlight, 1)},
		{"waiting", "at the broker", "", level(r.Backlog, 1)},
		{"tester", "perfmq", "cores", flow(&r.Tester.CPU, 1, r.Length)},
		{"tester", "all programs of its machine", "cores", flow(machine, 1, r.Length)},
	}
	for kind, name := range result.KindNames() {
		var p50, p99, longest *int64
		if l := r.Latencies[kind]; l != nil && l.Count > 0 {
			longest = &l.Max
			if l.Percentiles != nil {
				p50, p99 = &l.P50, &l.P99
			}
		}
		list = append(list, []figure{
			{"latency", name + " p50", "us", level(p50, 1)},
			{"latency", name + " p99", "us", level(p99, 1)},
			{"latency", name + " max", "us", level(longest, 1)},
		}...)
	}
	u := cmp.Or(r.BrokerSide, &result.BrokerUse{})
	return append(list, []figure{
		{"side-cores", "process", "cores", flow(u.CPU, 1, u.CPUSpan)},
		{"side-shares", "garbage collection", "%", flow(u.CollectionTime, 100, u.Span)},
		{"side-shares", "busiest disk", "%", level(u.DiskBusy, 100)},
		{"side-memory", "memory", "MB", level(u.Memory, 1e-6)},
		{"side-memory", "heap", "MB", level(u.Heap, 1e-6)},
		{"side-bytes", "disk read", "MB/s", flow(u.DiskRead, 1, u.Span)},
		{"side-bytes", "disk written", "MB/s", flow(u.DiskWritten, 1, u.Span)},
		{"side-bytes", "network in", "MB/s", flow(u.NetIn, 1, u.Span)},
		{"side-bytes", "network out", "MB/s", flow(u.NetOut, 1, u.Span)},
		{"side-bytes", "loopback", "MB/s", flow(u.Loopback, 1, u.Span)},
		{"side-others", "load average", "", level(u.Load, 1)},
		{"side-others", "threads", "", level(u.Threads, 1)},
		{"side-others", "open files", "", level(u.Files, 1)},
		{"side-others", "errors in the log", "/s", flow(u.Errors, 1e6, u.Span)},
		{"side-others", "warnings in the log", "/s", flow(u.Warnings, 1e6, u.Span)},
	}...)
}

// curve is a figure over the points of a run. With Low and High, a point is of several rows; a state has no High, since
// its value is the highest.
type curve struct {
	Chart string     `json:"chart"`
	Name  string     `json:"name"`
	Unit  string     `json:"unit"`
	Value []number64 `json:"value"`
	Low   []number64 `json:"low,omitempty"`
	High  []number64 `json:"high,omitempty"`
}

// curves returns the curves of all figures that some point has.
func (r *Run) curves() []curve {
	list := []curve{} // not null, which no script can loop over
	for _, f := range figures(&result.Row{}) {
		c := curve{Chart: f.chart, Name: f.name, Unit: f.unit}
		drawn := false
		for i := range r.series.points {
			v, known := r.series.points[i].values[f.name]
			if !known {
				v.low, v.high = math.NaN(), math.NaN()
			}
			drawn = drawn || known
			c.Value = append(c.Value, number64(v.drawn()))
			if r.series.span > 0 {
				c.Low = append(c.Low, number64(v.low)) // infinite if not known
				c.High = append(c.High, number64(v.high))
			}
		}
		if drawn {
			list = append(list, c)
		}
	}
	return list
}

// tile is a number that sums up a run. Its mark is good, bad or warn, or empty without a judgement.
type tile struct{ Label, Value, Mark string }

// unmeasured stands for an unknown value.
const unmeasured = "not measured"

// tiles returns the numbers that sum up the run.
func (r *Run) tiles() []tile {
	res := r.Result
	values := res.Metrics()
	rate, kind := "received", "transfer"
	if res.Total.Producers != nil {
		rate, kind = "completed", "ack"
	}
	if _, known := values["response.p99"]; known {
		kind = "response"
	}
	var list []tile
	for i, name := range []string{rate + ".avg", kind + ".p50", kind + ".p99", kind + ".max", "lost", "duplicated"} {
		t := tile{Label: strings.Replace(strings.TrimSuffix(name, ".avg"), ".", " ", 1)}
		failure := func(f result.Finding) bool { return f.Kind == name && f.Failure }
		switch v, known := values[name]; {
		case !known:
			t.Value = unmeasured
		case i == 0:
			t.Value = number(v) + "/s"
		case i < 4:
			t.Value = words.Duration(int64(v))
		case v == 0:
			t.Value, t.Mark = "0", "good"
		case slices.ContainsFunc(res.Findings, failure):
			t.Value, t.Mark = number(v), "bad"
		default:
			t.Value, t.Mark = number(v), "warn"
		}
		list = append(list, t)
	}
	return append(list, thresholdTile(res.Thresholds), limitTile(res))
}

func thresholdTile(list []result.Threshold) tile {
	broken := slices.DeleteFunc(slices.Clone(list), func(t result.Threshold) bool { return t.Kept })
	t := tile{"thresholds", fmt.Sprintf("%d/%d", len(list)-len(broken), len(list)), "good"}
	switch {
	case len(list) == 0:
		t.Value, t.Mark = "none", ""
	case len(broken) > 0:
		t.Mark = "bad"
	}
	return t
}

func limitTile(r *result.Result) tile {
	t := tile{"limit", unmeasured, ""}
	switch {
	case len(r.Outages) > 0:
		t.Value, t.Mark = "outage", "warn"
	case r.Limit != nil:
		t.Value, t.Mark = words.LimitTitle(r.Limit.Kind), map[bool]string{true: "warn"}[r.LowerBound()]
	}
	return t
}

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

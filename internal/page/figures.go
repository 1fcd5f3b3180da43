package page

import (
	"cmp"
	"fmt"
	"maps"
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
	var live, opened, notOpened, lost *uint64
	if o := r.Connections; o != nil || r.Live > 0 {
		o = cmp.Or(o, &result.Connections{})
		live, opened, notOpened, lost = &r.Live, &o.Opened, new(o.Refused+o.TimedOut+o.Unmade), &o.Lost
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
		{"connections", "live", "", level(live, 1)},
		{"openings", "opened", "/s", flow(opened, 1e6, r.Length)},
		{"openings", "not opened", "/s", flow(notOpened, 1e6, r.Length)},
		{"openings", "lost", "/s", flow(lost, 1e6, r.Length)},
		{"tester", "perfmq", "cores", flow(&r.Tester.CPU, 1, r.Length)},
		{"tester", "all programs of its machine", "cores", flow(machine, 1, r.Length)},
	}
	for kind, name := range result.KindNames() {
		var p50, p99, longest *int64
		shown := !result.Kinds()[kind].Stage || r.Connections != nil // workers open before the load
		if l := r.Latencies[kind]; l != nil && l.Count > 0 && shown {
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
	if _, known := values["round-trip.p99"]; known {
		kind = "round-trip"
	}
	var list []tile
	if o := res.Total.Connections; o != nil {
		list = append(list, tile{Label: "opened", Value: number(float64(o.Opened))})
		if live, known := values["connections.live"]; known {
			list = append(list, tile{Label: "most live", Value: number(live)})
		}
		failed := tile{"not opened or lost", number(float64(o.Refused + o.TimedOut + o.Unmade + o.Lost)), "good"}
		if failed.Value != "0" {
			failed.Mark = "bad"
		}
		list = append(list, failed)
		if res.Total.Producers == nil {
			for _, of := range []string{"p50", "p99", "max"} {
				if v, known := values["open."+of]; known {
					list = append(list, tile{Label: "open " + of, Value: words.Duration(int64(v))})
				}
			}
			return append(list, thresholdTile(res.Thresholds), limitTile(res))
		}
	}
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

// point is a row of a run, or several successive rows. Times are in microseconds.
type point struct {
	from, to, length int64
	phase, step      string
	values           map[string]value // by the key of a figure
}

// add joins p with the next point.
func (p *point) add(next *point) {
	p.to, p.phase, p.step = next.to, next.phase, next.step
	p.length += next.length
	for key, v := range next.values {
		if sum, known := p.values[key]; known {
			v.amount, v.time = v.amount+sum.amount, v.time+sum.time
			v.low, v.high = min(v.low, sum.low), max(v.high, sum.high)
		}
		p.values[key] = v
	}
}

// series has the points of a run, thinned as the run gets longer: at most 2*limit points, each with the range of its
// rows.
type series struct {
	limit  int
	span   int64 // maximum length of a point; 0 while each is a row
	points []point
}

func (s *series) add(row *result.Row) {
	p := point{
		from: row.Elapsed - row.Length, to: row.Elapsed, length: row.Length, phase: row.Phase, step: row.Step,
		values: map[string]value{},
	}
	for _, f := range figures(row) {
		if f.value != nil {
			p.values[f.name] = *f.value
		}
	}
	s.take(p)
	for len(s.points) > 2*s.limit {
		s.thin()
	}
}

// shortest is the minimum length of a point of its own, in microseconds: rates of shorter rows say nothing.
const shortest = 700_000

// take joins p with the last point if both are of one step and phase, and p is short or the joined point is not too
// long. A short drain adds its states (latencies) to the last point: the curves end with the load.
func (s *series) take(p point) {
	if n := len(s.points); n > 0 && s.points[n-1].step == p.step {
		last := &s.points[n-1]
		switch {
		case last.phase == p.phase && (p.length < shortest || p.to-last.from <= s.span+s.span/20):
			last.add(&p)
			return
		case p.phase == result.Drain && p.length < shortest:
			maps.DeleteFunc(p.values, func(_ string, v value) bool { return v.time > 0 })
			p.to, p.length, p.phase = last.to, 0, last.phase
			last.add(&p)
			return
		}
	}
	s.points = append(s.points, p)
}

// thin doubles the length of the points. If that does not suffice, because of many short steps, it joins points in
// pairs.
func (s *series) thin() {
	before := s.points
	s.span = max(2*s.span, 2_000_000)
	s.points = make([]point, 0, 2*s.limit+1)
	for i := range before {
		s.take(before[i])
	}
	if total := before[len(before)-1].to - before[0].from; s.span < total || len(s.points) <= 2*s.limit {
		return
	}
	before, s.points = s.points, nil
	for i := 0; i < len(before); i += 2 {
		p := before[i]
		if i+1 < len(before) {
			p.add(&before[i+1])
		}
		s.points = append(s.points, p)
	}
}

// line is a row of the table of messages: a run, a step, or a group of one.
type line struct {
	run         string
	result      *result.Result
	result.Step // without a name for the run
	due         uint64
}

// lines returns the line of the run and, if there are several steps, one for each.
func (r *Run) lines() []line {
	res := r.Result
	list := []line{{run: r.Name, result: res, Step: result.Step{
		Start: res.Start, End: res.End, Counts: res.Total, Figures: res.Figures, Latencies: res.Latencies,
		Limit: res.Limit,
	}}}
	if len(res.Steps) < 2 {
		return list
	}
	for _, s := range res.Steps {
		list = append(list, line{run: r.Name, result: res, Step: s})
	}
	return list
}

func (l *line) elapsed() int64 { return max(0, l.End-l.Start) }

// values returns the numbers of a line by name: known rates, counts, times in microseconds and the use of the machine.
// Latencies are there even if many values are left out of them.
func (l *line) values() map[string]float64 {
	own := &result.Result{Latencies: l.Latencies, Figures: l.Figures}
	if l.Name == "" {
		own.BrokerSide = l.result.BrokerSide
	}
	all := own.Metrics()
	all["elapsed"] = float64(l.elapsed()) / 1e6
	if p := l.Counts.Producers; p != nil {
		all["sent"], all["completed"] = float64(p.Sent), float64(p.Completed)
		all["failed"], all[unconfirmed] = float64(failed(p)), float64(p.Unconfirmed)
	}
	if c := l.Counts.Consumers; c != nil {
		all["received"] = float64(c.Received)
	}
	if l.due > 0 {
		all["due"] = float64(l.due)
	}
	if t := &l.result.Tester; l.Name == "" {
		all["tester.cpu"] = 100 * float64(t.CPU) / float64(max(1, l.elapsed()))
		all["tester.memory"] = float64(max(t.Memory, t.MemoryPeak))
		if t.MachineAll > 0 {
			all["machine"] = 100 * float64(t.MachineBusy) / float64(t.MachineAll)
		}
	}
	return all
}

// unconfirmed is a column that only tables with such messages have.
const unconfirmed = "unconfirmed"

// fill gives a table the columns, and a row for each of the lines.
func (t *Table) fill(columns []column, lines []line) {
	if !slices.ContainsFunc(lines, func(l line) bool { return l.values()[unconfirmed] > 0 }) {
		columns = slices.DeleteFunc(columns, func(c column) bool { return c.value == unconfirmed })
		t.Send--
	}
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	for _, l := range lines {
		row, values := []string{l.run}, l.values()
		for _, c := range columns {
			v, known := values[c.value]
			row = append(row, c.text(v, known))
		}
		t.Rows = append(t.Rows, row)
	}
}

// failed returns the number of messages that the broker certainly did not accept.
func failed(p *result.Producers) uint64 { return p.Rejected + p.Released + p.Modified + p.Failed }

package page

import (
	"math"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// Roles of figures.
const (
	sending   = "sending"
	receiving = "receiving"
)

// figure is a curve over time in one of the charts of assets/page.js.
type figure struct {
	chart, name, unit string
	role              string                          // only of rows with this role; empty for all
	of                func(*result.Row) (value, bool) // what a row has of it; the parts for the role are not nil
}

// value is a figure during a point: an amount and its time (the quotient is drawn), or a state with time 0.
type value struct {
	amount, time float64
	low, high    float64 // of the states, or of the quotients of full seconds: infinite if there are none
}

// flow is an amount in a time.
func flow[N uint64 | int64](n *N, times float64, span int64) (value, bool) {
	if n == nil || span <= 0 {
		return value{}, false
	}
	v := value{times * float64(*n), float64(span), math.Inf(1), math.Inf(-1)}
	if span >= stats.FullSecond.Microseconds() {
		v.low, v.high = v.amount/v.time, v.amount/v.time
	}
	return v, true
}

// level is a state.
func level[N uint64 | int64 | float64](n *N, times float64) (value, bool) {
	if n == nil {
		return value{}, false
	}
	v := times * float64(*n)
	return value{low: v, high: v}, true
}

// drawn is the average of an amount over its time, or the highest state; NaN if the time is too short for a rate.
func (v *value) drawn() float64 {
	switch {
	case v.time == 0:
		return v.high
	case v.time < shortest/2:
		return math.NaN()
	}
	return v.amount / v.time
}

// figures returns the figures of all charts. Bytes per microsecond are MB/s.
func figures() []figure {
	type row = *result.Row
	type use = *result.BrokerUse
	list := []figure{
		{"throughput", "completed", "/s", sending, func(r row) (value, bool) {
			return flow(&r.Producers.Completed, 1e6, r.Length)
		}},
		{"throughput", "received", "/s", receiving, func(r row) (value, bool) {
			return flow(&r.Consumers.Received, 1e6, r.Length)
		}},
		{"throughput", "sent", "/s", sending, func(r row) (value, bool) { return flow(&r.Producers.Sent, 1e6, r.Length) }},
		{"waiting", "in flight", "", sending, func(r row) (value, bool) { return level(&r.InFlight, 1) }},
		{"waiting", "at the broker", "", "", func(r row) (value, bool) { return level(r.Backlog, 1) }},
		{"tester", "perfmq", "cores", "", func(r row) (value, bool) { return flow(&r.Tester.CPU, 1, r.Length) }},
		{"tester", "all programs of its machine", "cores", "", func(r row) (value, bool) {
			v, known := flow(&r.Tester.MachineBusy, 1, r.Length)
			return v, known && r.Tester.MachineAll > 0
		}},
	}
	for kind, name := range result.KindNames() {
		for _, s := range []struct {
			name string
			of   func(*result.Latency) *int64
		}{
			{"p50", func(l *result.Latency) *int64 { return &l.P50 }},
			{"p99", func(l *result.Latency) *int64 { return &l.P99 }},
			{"max", func(l *result.Latency) *int64 { return &l.Max }},
		} {
			list = append(list, figure{"latency", name + " " + s.name, "us", "", func(r row) (value, bool) {
				l := r.Latencies[kind]
				if l == nil || l.Count == 0 || l.Percentiles == nil && s.name != "max" {
					return value{}, false
				}
				return level(s.of(l), 1)
			}})
		}
	}
	for _, f := range []struct {
		chart, name, unit string
		of                func(u use) (value, bool)
	}{
		{"cores", "process", "cores", func(u use) (value, bool) { return flow(u.CPU, 1, u.CPUSpan) }},
		{"shares", "garbage collection", "%", func(u use) (value, bool) { return flow(u.CollectionTime, 100, u.Span) }},
		{"shares", "busiest disk", "%", func(u use) (value, bool) { return level(u.DiskBusy, 100) }},
		{"memory", "memory", "MB", func(u use) (value, bool) { return level(u.Memory, 1e-6) }},
		{"memory", "heap", "MB", func(u use) (value, bool) { return level(u.Heap, 1e-6) }},
		{"bytes", "disk read", "MB/s", func(u use) (value, bool) { return flow(u.DiskRead, 1, u.Span) }},
		{"bytes", "disk written", "MB/s", func(u use) (value, bool) { return flow(u.DiskWritten, 1, u.Span) }},
		{"bytes", "network in", "MB/s", func(u use) (value, bool) { return flow(u.NetIn, 1, u.Span) }},
		{"bytes", "network out", "MB/s", func(u use) (value, bool) { return flow(u.NetOut, 1, u.Span) }},
		{"bytes", "loopback", "MB/s", func(u use) (value, bool) { return flow(u.Loopback, 1, u.Span) }},
		{"others", "load average", "", func(u use) (value, bool) { return level(u.Load, 1) }},
		{"others", "threads", "", func(u use) (value, bool) { return level(u.Threads, 1) }},
		{"others", "open files", "", func(u use) (value, bool) { return level(u.Files, 1) }},
		{"others", "errors in the log", "/s", func(u use) (value, bool) { return flow(u.Errors, 1e6, u.Span) }},
		{"others", "warnings in the log", "/s", func(u use) (value, bool) { return flow(u.Warnings, 1e6, u.Span) }},
	} {
		list = append(list, figure{"side-" + f.chart, f.name, f.unit, "", func(r row) (value, bool) {
			return f.of(r.BrokerSide)
		}})
	}
	return list
}

// valuesOf returns the figures of a row by name.
func valuesOf(r result.Row) map[string]value {
	if r.BrokerSide == nil {
		r.BrokerSide = &result.BrokerUse{}
	}
	values := map[string]value{}
	for _, f := range figures() {
		if f.role == sending && r.Producers == nil || f.role == receiving && r.Consumers == nil {
			continue
		}
		if v, known := f.of(&r); known {
			values[f.name] = v
		}
	}
	return values
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
func (r *Run) curves() (list []curve) {
	seen := map[string]bool{}
	for i := range r.series.points {
		for key := range r.series.points[i].values {
			seen[key] = true
		}
	}
	for _, f := range figures() {
		if !seen[f.name] {
			continue
		}
		c := curve{Chart: f.chart, Name: f.name, Unit: f.unit}
		for i := range r.series.points {
			p := &r.series.points[i]
			v, known := p.values[f.name]
			if !known {
				v.low, v.high = math.NaN(), math.NaN()
			}
			c.Value = append(c.Value, number64(v.drawn()))
			if r.series.span > 0 {
				c.Low = append(c.Low, number64(v.low)) // infinite if not known
				c.High = append(c.High, number64(v.high))
			}
		}
		list = append(list, c)
	}
	return list
}

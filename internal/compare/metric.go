package compare

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// Metric is a figure of a run that results are compared by.
type Metric struct {
	Name string
	Unit threshold.Unit
	// Higher: more of it is better.
	Higher bool

	of func(*result.Result) (value float64, ok bool)
}

// Usual are the names of the metrics that are compared if none are named.
func Usual() []string {
	return []string{
		record.FoundMetric, "completed.avg", "received.avg", "ack.p50", "ack.p99", "response.p99", "transfer.p99",
	}
}

// Metrics returns all metrics. Rates are averages of the measured time, from the end of the warm-up to the end of the
// load; latencies are of the messages due after the warm-up. Their names are those of thresholds.
func Metrics() []Metric {
	list := []Metric{
		{
			Name: "sent.avg", Unit: threshold.PerSecond, Higher: true,
			of: rate(func(f *result.Figures) *float64 { return f.Sent }, func(c *result.Counts) (uint64, bool) {
				return field(c.Producers, func(p *result.Producers) uint64 { return p.Sent })
			}),
		},
		{
			Name: "completed.avg", Unit: threshold.PerSecond, Higher: true,
			of: rate(func(f *result.Figures) *float64 { return f.Completed }, func(c *result.Counts) (uint64, bool) {
				return field(c.Producers, func(p *result.Producers) uint64 { return p.Completed })
			}),
		},
		{
			Name: "received.avg", Unit: threshold.PerSecond, Higher: true,
			of: rate(func(f *result.Figures) *float64 { return f.Received }, func(c *result.Counts) (uint64, bool) {
				return field(c.Consumers, func(k *result.Consumers) uint64 { return k.Received })
			}),
		},
	}
	for _, l := range []struct {
		name string
		of   func(*result.Latencies) *result.Latency
	}{
		{"delay", func(l *result.Latencies) *result.Latency { return l[result.Delay] }},
		{"ack", func(l *result.Latencies) *result.Latency { return l[result.Ack] }},
		{"response", func(l *result.Latencies) *result.Latency { return l[result.Response] }},
		{"transfer", func(l *result.Latencies) *result.Latency { return l[result.Transfer] }},
	} {
		for _, s := range []struct {
			name string
			of   func(*result.Latency) float64
		}{
			{"mean", (*result.Latency).Mean},
			{"p50", func(l *result.Latency) float64 { return float64(l.P50) }},
			{"p90", func(l *result.Latency) float64 { return float64(l.P90) }},
			{"p99", func(l *result.Latency) float64 { return float64(l.P99) }},
			{"p99.9", func(l *result.Latency) float64 { return float64(l.P999) }},
			{"p99.99", func(l *result.Latency) float64 { return float64(l.P9999) }},
			{"max", func(l *result.Latency) float64 { return float64(l.Max) }},
		} {
			list = append(list, Metric{
				Name: l.name + "." + s.name, Unit: threshold.Time,
				of: func(r *result.Result) (float64, bool) {
					latency := l.of(&r.Latencies)
					of := r.Measured
					if of == nil {
						of = &r.Total
					}
					if latency == nil || latency.Percentiles == nil || !threshold.Measured(latency.Count, of.LeftOut(l.name)) {
						return 0, false
					}
					return s.of(latency), true
				},
			})
		}
	}
	return append(list, found())
}

// Of returns the metric of a result; false if the result does not have it.
func (m *Metric) Of(r *result.Result) (float64, bool) { return m.of(r) }

// Find returns the metric of a name.
func Find(name string) (Metric, bool) {
	list := Metrics()
	i := slices.IndexFunc(list, func(m Metric) bool { return strings.EqualFold(m.Name, name) })
	if i < 0 {
		return Metric{}, false
	}
	return list[i], true
}

// Names returns the names of all metrics.
func Names() (names []string) {
	for _, m := range Metrics() {
		names = append(names, m.Name)
	}
	return names
}

func field[T any](of *T, get func(*T) uint64) (uint64, bool) {
	if of == nil {
		return 0, false
	}
	return get(of), true
}

// rate returns an average rate of the measured time, in messages per second: that of the figures of the result, which
// leaves the silence out in which a run that only receives waits for its end. Results of older versions have no
// figures: of them it is the count of the rows.
func rate(
	figure func(*result.Figures) *float64, count func(*result.Counts) (uint64, bool),
) func(*result.Result) (float64, bool) {
	return func(r *result.Result) (float64, bool) {
		if r.Figures != nil {
			if v := figure(r.Figures); v != nil {
				return *v, true
			}
		}
		var n uint64
		var length int64
		known := false
		for i := range r.Rows {
			row := &r.Rows[i]
			if row.Phase != result.Measure {
				continue
			}
			length += row.Length
			if c, ok := count(&row.Counts); ok {
				n, known = n+c, true
			}
		}
		if !known || length <= 0 {
			return 0, false
		}
		return float64(n) * 1e6 / float64(length), true
	}
}

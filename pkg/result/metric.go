package result

import "cmp"

// Statistic is a figure of a latency.
type Statistic struct {
	// Name follows that of the latency in the name of a metric: ack.p99.
	Name, Help string
	of         func(*Percentiles) int64 // nil for those that need no percentiles
}

// Statistics returns the statistics of each latency.
func Statistics() []Statistic {
	return []Statistic{
		{"mean", "mean", nil},
		{"p50", "median", func(p *Percentiles) int64 { return p.P50 }},
		{"p90", "90th percentile", func(p *Percentiles) int64 { return p.P90 }},
		{"p99", "99th percentile", func(p *Percentiles) int64 { return p.P99 }},
		{"p99.9", "99.9th percentile", func(p *Percentiles) int64 { return p.P999 }},
		{"p99.99", "99.99th percentile", func(p *Percentiles) int64 { return p.P9999 }},
		{"max", "maximum", nil},
	}
}

// Measured tells whether the values of a latency stand for all messages: not without a value, nor if over 1% are left
// out because they are below zero, as between hosts whose clocks differ.
func Measured(values int64, leftOut uint64) bool {
	const share = 0.01
	return values > 0 && float64(leftOut) <= share*(float64(values)+float64(leftOut))
}

// Metrics adds the statistics of latencies in microseconds, by the names of metrics. LeftOut returns how many values a
// latency lacks; see [Measured].
func (l *Latencies) Metrics(into map[string]float64, leftOut func(latency string) uint64) {
	for _, k := range kinds {
		latency := l[k.Kind]
		if latency == nil || !Measured(latency.Count, leftOut(k.Name)) {
			continue
		}
		into[k.Name+".mean"], into[k.Name+".max"] = latency.Mean(), float64(latency.Max)
		p := latency.Percentiles
		if p == nil && latency.Histogram != nil {
			p = latency.computed()
		}
		for _, s := range Statistics() {
			if s.of != nil && p != nil {
				into[k.Name+"."+s.Name] = float64(s.of(p))
			}
		}
	}
}

// Metrics adds the rates and the share of missed messages, by the names of metrics.
func (f *Figures) Metrics(into map[string]float64) {
	for name, rate := range map[string]*float64{
		"sent.avg": f.Sent, "completed.avg": f.Completed, "received.avg": f.Received,
	} {
		if rate != nil {
			into[name] = *rate
		}
	}
	if f.Due != nil && f.Unsent != nil && *f.Due > 0 {
		into["rate.missed"] = 100 * float64(*f.Unsent) / float64(*f.Due)
	}
	for name, rate := range map[string]*Extreme{
		"completed.min": f.MinimumCompleted, "completed.max": f.MaximumCompleted,
		"received.min": f.MinimumReceived, "received.max": f.MaximumReceived,
	} {
		if rate != nil {
			into[name] = rate.PerSecond
		}
	}
}

// Metrics returns the rates of the measured part and the latencies of messages due after the warm-up, by the names
// of metrics: rates in messages per second, latencies in microseconds. What was not measured is missing.
func (r *Result) Metrics() map[string]float64 {
	all := map[string]float64{}
	if r.Figures != nil {
		r.Figures.Metrics(all)
	}
	r.Latencies.Metrics(all, cmp.Or(r.Measured, &r.Total).LeftOut)
	return all
}

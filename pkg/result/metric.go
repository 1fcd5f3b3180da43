package result

import (
	"cmp"
	"slices"
)

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

// Measured reports whether the values of a latency stand for all messages: not without a value, nor if over 1% are left
// out because they are below zero, as between hosts with different clocks.
func Measured(values int64, leftOut uint64) bool {
	const share = 0.01
	return values > 0 && float64(leftOut) <= share*(float64(values)+float64(leftOut))
}

// Metrics returns the metrics of a run by their names and in their units: counts of the messages due after the warm-up,
// rates of the measured part, latencies in microseconds, shares in percent. Unknown metrics are missing. A step or a
// group is a run with its own counts, latencies and figures. Stalls and outages that were looked for are not nil; on
// several hosts at the same time they count once. Of an incomplete run, times of outages are the times so far.
func (r *Result) Metrics() map[string]float64 {
	f := map[string]float64{}
	total, measured := r.Total.Values(), cmp.Or(r.Measured, &r.Total).Values()
	has := ProducerRole.If(r.Total.Producers != nil) | ConsumerRole.If(r.Total.Consumers != nil) |
		OpenerRole.If(r.Total.Connections != nil) | Transacted | Delaying |
		Requesting.If(r.Latencies[RoundTrip] != nil) | Responding.If(r.Latencies[Service] != nil)
	for _, c := range counters() {
		switch {
		case c.Name == "" || c.Role&^has != 0:
		case c.WithWarmup:
			f[c.Name] = float64(total[c.Counter])
		case r.Measured != nil:
			f[c.Name] = float64(measured[c.Counter])
		}
	}
	for _, k := range kinds {
		if l := r.Latencies[k.Kind]; l != nil && Measured(l.Count, r.LeftOut(&k)) {
			addLatency(f, k.Name, l)
		}
	}
	if r.Figures != nil {
		addRates(f, r.Figures)
	}
	if r.Stalls != nil && r.MoreStalls == 0 {
		addSpans(f, "stall", slices.DeleteFunc(slices.Clone(r.Stalls), func(s Stall) bool { return s.Warmup }))
		f["stall.count"] += float64(r.Unlisted)
	}
	if r.Outages != nil {
		addOutages(f, r)
	}
	if r.Missing != nil {
		f["missing"] = float64(*r.Missing)
	}
	if v := r.Verification; v != nil {
		if v.Known {
			f["lost"], f["left"] = float64(v.Total.Lost), float64(v.Total.Left)
		}
		if v.Window > 0 {
			f["arrived_late"] = float64(v.Total.ArrivedLate)
		}
		f["duplicated"], f["out_of_order"], f["damaged"] = float64(v.Total.Duplicates), float64(v.Total.Disordered),
			float64(v.Total.Damaged)
	}
	var used, all float64
	for _, row := range r.Rows {
		used += float64(row.Tester.CPU)
		all += float64(row.Length) * float64(row.Tester.Cores)
	}
	if all > 0 {
		f["tester.cpu"] = 100 * used / all
	}
	if len(r.BrokerSide) == 1 { // several may have watched the same broker
		r.BrokerSide[0].Whole.metrics(f)
	}
	return f
}

func addLatency(f map[string]float64, name string, l *Latency) {
	f[name+".mean"], f[name+".max"] = l.Mean(), float64(l.Max)
	for _, s := range Statistics() {
		if s.of != nil && l.Percentiles != nil {
			f[name+"."+s.Name] = float64(s.of(l.Percentiles))
		}
	}
}

// addRates adds the rates and the share of missed messages.
func addRates(f map[string]float64, figures *Figures) {
	for name, rate := range map[string]*float64{
		"sent.avg": figures.Sent, "completed.avg": figures.Completed, "received.avg": figures.Received,
	} {
		if rate != nil {
			f[name] = *rate
		}
	}
	if figures.MaximumLive != nil {
		f["connections.live"] = float64(*figures.MaximumLive)
	}
	if figures.Due != nil && figures.Unsent != nil {
		f["rate.missed"] = 100 * (float64(*figures.Unsent) / float64(max(1, *figures.Due)))
	}
	for name, rate := range map[string]*Extreme{
		"completed.min": figures.MinimumCompleted, "completed.max": figures.MaximumCompleted,
		"received.min": figures.MinimumReceived, "received.max": figures.MaximumReceived,
	} {
		if rate != nil {
			f[name] = rate.PerSecond
		}
	}
}

// addOutages adds the outages. At the end, the longest is unknown if one has no end. The number is unknown if several
// hosts do not list all: some may have been at the same time.
func addOutages(f map[string]float64, r *Result) {
	more := cmp.Or(r.MoreOutages, &MoreOutages{})
	inDoubt, recovery, ended, recovered := more.InDoubt, int64(0), true, more.Count == 0
	var list []Stall
	for _, o := range r.Outages {
		length := o.Length
		if o.Unended() {
			length, ended = r.End-o.Time, false
		}
		list = append(list, Stall{Host: o.Host, Time: o.Time, Length: length})
		inDoubt += o.InDoubt
		recovery, recovered = max(recovery, o.Recovery()), recovered && o.Recovered > 0
	}
	addSpans(f, "outage", list)
	f["outage.count"] += float64(more.Count)
	f["outage.max"] = max(f["outage.max"], float64(more.Longest))
	f["in_doubt"], f["recovery.max"] = float64(inDoubt), float64(recovery)
	for name, known := range map[string]bool{
		"outage.count": more.Count == 0 || len(r.Parts) < 2, "outage.max": ended || !r.Complete,
		"recovery.max": recovered || !r.Complete,
	} {
		if !known {
			delete(f, name)
		}
	}
}

// addSpans adds the number of times and the longest of any host. Overlapping times of several hosts count once; times
// of one host count each.
func addSpans(f map[string]float64, name string, list []Stall) {
	slices.SortFunc(list, func(a, b Stall) int { return cmp.Compare(a.Time, b.Time) })
	count, until, longest := 0, int64(-1), int64(0)
	open := map[string]int{} // those that overlap so far, by host
	for _, s := range list {
		if s.Time >= until {
			clear(open)
		}
		if open[s.Host]++; open[s.Host] > most(open, s.Host) {
			count++
		}
		until, longest = max(until, s.Time+s.Length), max(longest, s.Length)
	}
	f[name+".count"], f[name+".max"] = float64(count), float64(longest)
}

// most returns the greatest number of the other hosts.
func most(open map[string]int, host string) (n int) {
	for name, k := range open {
		if name != host {
			n = max(n, k)
		}
	}
	return n
}

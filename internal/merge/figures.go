package merge

import (
	"cmp"
	"math"
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

// values are the values of metrics by name, in the units that thresholds have them in. A metric without a value is not
// there.
type values map[string]float64

// values returns the metrics of a step, or of the whole of several steps, or of a group in them. What the results do
// not say is missing.
func (s *shards) values(step *plannedStep, group string) values {
	m, steps := s.merged, s.plan.Steps
	if step != nil {
		steps = []plannedStep{*step}
	}
	if !slices.ContainsFunc(steps, func(p plannedStep) bool { return !p.alone(group) }) {
		group = "" // it is all that there is
	}
	whole := len(steps) == len(s.plan.Steps)
	sums, figures := result.Group{Counts: m.Total, Latencies: m.Latencies}, m.Figures
	measured, time := m.Measured, span{0, m.End}
	if !whole {
		at := stepOf(m, step.Name)
		if at == nil {
			return nil
		}
		sums, figures, time = result.Group{Counts: at.Counts, Latencies: at.Latencies}, at.Figures, span{at.Start, at.End}
		if measured = nil; step.Warmup == "" {
			measured = &at.Counts
		}
	}
	if group != "" {
		var ok bool
		if sums, ok = s.group(steps, group); !ok {
			return nil
		}
		measured = &sums.Measured
		figures, _ = s.figures(steps, group)
		if step != nil && step.reads() { // a part waits for its end with nothing to read
			figures = &result.Figures{
				MinimumCompleted: figures.MinimumCompleted, MaximumCompleted: figures.MaximumCompleted,
				MinimumReceived: figures.MinimumReceived, MaximumReceived: figures.MaximumReceived,
			}
		}
	}
	f := values{}
	total, due := sums.Counts.Values(), []uint64(nil)
	if measured != nil {
		list := measured.Values()
		due = list[:]
	}
	result.CounterMetrics(f, due, total[:], sums.Counts.Producers != nil, sums.Counts.Consumers != nil)
	sums.Latencies.Metrics(f, cmp.Or(measured, &sums.Counts).LeftOut)
	if figures != nil {
		figures.Metrics(f)
	}
	if s.plan.Stalls != "" {
		f.stalls(m, time, group)
	}
	f.testers(s.parts, steps)
	if whole {
		f.verified(m)
		if slices.ContainsFunc(steps, func(p plannedStep) bool {
			return slices.ContainsFunc(p.Groups, func(g plannedGroup) bool { return g.Reconnect })
		}) {
			f.reconnections(m.Outages, m.MoreOutages)
		}
	}
	return f
}

// group returns the sums of a group over steps. It is false if the results do not say what was measured of it.
func (s *shards) group(steps []plannedStep, name string) (sum result.Group, known bool) {
	for i := range steps {
		p := &steps[i]
		at := stepOf(s.merged, p.Name)
		if !p.has(name) || at == nil {
			continue
		}
		k := slices.IndexFunc(at.Groups, func(g result.Group) bool { return g.Name == name })
		of := &result.Group{Counts: at.Counts, Measured: at.Counts, Latencies: at.Latencies}
		if k >= 0 {
			of = &at.Groups[k]
		} else if !p.alone(name) || p.Warmup != "" { // results do not list a group that is all of its step
			return sum, false
		}
		sum.Add(of)
		known = true
	}
	return sum, known
}

// verified adds the figures that are known of whole runs only.
func (f values) verified(m *result.Result) {
	if m.Missing != nil {
		f["missing"] = float64(*m.Missing)
	}
	if v := m.Verification; v != nil {
		if v.Known {
			f["lost"], f["left"] = float64(v.Total.Lost), float64(v.Total.Left)
		}
		f["duplicated"], f["out_of_order"], f["damaged"] = float64(v.Total.Duplicates), float64(v.Total.Disordered),
			float64(v.Total.Damaged)
	}
}

// reconnections adds the outages: those of several hosts that were at the same time are one. How long the longest was
// is not known if one had no end, nor their number if not all are listed.
func (f values) reconnections(list []result.Outage, more *result.MoreOutages) {
	var times []result.Stall
	var inDoubt uint64
	endless := false
	for i := range list {
		o := &list[i]
		length := o.Length
		if length == 0 && (o.Reconnected > 0 || len(o.NotBack) > 0) { // else its workers needed no connection any more
			length, endless = math.MaxInt64-o.Time, true
		}
		times = append(times, result.Stall{Host: o.Host, Time: o.Time, Length: length})
		inDoubt += o.InDoubt
	}
	f.spans("outage", times)
	if endless {
		delete(f, "outage.max")
	}
	if more != nil {
		delete(f, "outage.count")
		if !endless {
			f["outage.max"] = max(f["outage.max"], float64(more.Longest))
		}
		inDoubt += more.InDoubt
	}
	f["in_doubt"] = float64(inDoubt)
	if more == nil && !slices.ContainsFunc(list, func(o result.Outage) bool { return o.Recovered == 0 }) {
		f["recovery.max"] = 0
		for i := range list {
			f["recovery.max"] = max(f["recovery.max"], float64(list[i].Recovery()))
		}
	}
}

// stalls adds the stalls of all groups, or of one, that began in a time and did not end in a warm-up: stalls of several
// hosts at the same time are one. Where results do not list all stalls, their number and the longest are not known.
func (f values) stalls(m *result.Result, within span, group string) {
	if m.MoreStalls > 0 {
		return
	}
	var times []result.Stall
	for i := range m.Stalls {
		if s := &m.Stalls[i]; !s.Warmup && s.Time >= within.from && s.Time <= within.to &&
			(group == "" || s.Group == group) {
			times = append(times, *s)
		}
	}
	f.spans("stall", times)
}

// spans adds how many times there were and the longest of any host. Times of several hosts that overlap are one; those
// that one host tells apart stay apart.
func (f values) spans(name string, list []result.Stall) {
	slices.SortFunc(list, func(a, b result.Stall) int { return cmp.Compare(a.Time, b.Time) })
	count, until, longest := 0, int64(-1), int64(0)
	of := map[string]int{} // those that overlap so far, by host
	for _, s := range list {
		if s.Time >= until {
			clear(of)
		}
		if of[s.Host]++; of[s.Host] > most(of, s.Host) {
			count++
		}
		until, longest = max(until, s.Time+s.Length), max(longest, s.Length)
	}
	f[name+".count"], f[name+".max"] = float64(count), float64(longest)
}

// most returns the greatest number of the other hosts.
func most(of map[string]int, host string) (n int) {
	for name, k := range of {
		if name != host {
			n = max(n, k)
		}
	}
	return n
}

// testers adds the processor time of all testers, of the processors that they may use, in these steps.
func (f values) testers(parts []*result.Result, steps []plannedStep) {
	var used, all float64
	for _, p := range parts {
		for i := range p.Rows {
			row := &p.Rows[i]
			if slices.ContainsFunc(steps, func(s plannedStep) bool { return s.Name == row.Step }) {
				used += float64(row.Tester.CPU)
				all += float64(row.Length) * float64(row.Tester.Cores)
			}
		}
	}
	if all > 0 {
		f["tester.cpu"] = 100 * used / all
	}
}

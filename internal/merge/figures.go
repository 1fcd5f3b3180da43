package merge

import (
	"cmp"
	"math"
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

// scope is the subject of thresholds: the whole of merged results, a step, or a group.
type scope struct {
	total     *result.Counts
	measured  *result.Counts // nil if it is not known
	averages  result.Averages
	latencies *result.Latencies
	group     bool // it is a group among others, whose averages are not in a result
}

// ofGroup makes it that of a group of a step, or of all steps that have it. It is false if the results do not tell the
// figures of the group.
func (s *scope) ofGroup(m *result.Result, plan *planned, step *plannedStep, name string) bool {
	if !plan.inRows(name) {
		return false
	}
	sum, known := result.Group{Name: name}, false
	for i := range plan.Steps {
		p := &plan.Steps[i]
		at := stepOf(m, p.Name)
		if !p.has(name) || at == nil || step != nil && p.Name != step.Name {
			continue
		}
		g, ok := p.groupOf(at, name)
		if !ok || sum.Add(&g) != nil {
			return false
		}
		known = true
	}
	*s = scope{total: &sum.Counts, measured: &sum.Measured, latencies: &sum.Latencies, group: true}
	return known
}

// groupOf returns the figures of a group in a step. Results do not list a group that is all of its step.
func (p *plannedStep) groupOf(at *result.Step, name string) (result.Group, bool) {
	if i := slices.IndexFunc(at.Groups, func(g result.Group) bool { return g.Name == name }); i >= 0 {
		return at.Groups[i], true
	}
	all := result.Group{Name: name, Counts: at.Counts, Measured: at.Counts, Latencies: at.Latencies}
	return all, p.is(name) && p.Warmup == ""
}

// values are the values of metrics by name, in the units that thresholds have them in. A metric without a value is not
// there.
type values map[string]float64

// figures are the values that the sums tell.
func (s *scope) figures() values {
	f := values{}
	total, measured := s.total.Values(), []uint64(nil)
	if s.measured != nil {
		list := s.measured.Values()
		measured = list[:]
	}
	result.CounterMetrics(f, measured, total[:], s.total.Producers != nil, s.total.Consumers != nil)
	s.averages.Metrics(f)
	of := s.measured
	if of == nil {
		of = s.total
	}
	s.latencies.Metrics(f, of.LeftOut)
	return f
}

// whole adds the figures that are known of whole runs only.
func (f values) whole(m *result.Result) {
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
	var times []span
	var inDoubt uint64
	endless := false
	for i := range list {
		o := &list[i]
		length := o.Length
		if length == 0 && (o.Reconnected > 0 || len(o.NotBack) > 0) { // else its workers needed no connection any more
			length, endless = math.MaxInt64-o.Time, true
		}
		times = append(times, span{o.Host, o.Time, length})
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

// stalls adds the stalls that began in the time from one moment to another and did not end in a warm-up: stalls of
// several hosts at the same time are one. Where results do not list all stalls, their number and the longest are not
// known.
func (f values) stalls(m *result.Result, from, to int64) {
	if m.MoreStalls > 0 {
		return
	}
	var times []span
	for i := range m.Stalls {
		if s := &m.Stalls[i]; !s.Warmup && s.Time >= from && s.Time <= to {
			times = append(times, span{s.Host, s.Time, s.Length})
		}
	}
	f.spans("stall", times)
}

// span is a time that a host has found, from a moment on.
type span struct {
	host         string
	from, length int64
}

// spans adds how many times there were and the longest of any host. Times of several hosts that overlap are one; those
// that one host tells apart stay apart.
func (f values) spans(name string, list []span) {
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	count, until, longest := 0, int64(-1), int64(0)
	of := map[string]int{} // those that overlap so far, by host
	for _, s := range list {
		if s.from >= until {
			clear(of)
		}
		if of[s.host]++; of[s.host] > most(of, s.host) {
			count++
		}
		until, longest = max(until, s.from+s.length), max(longest, s.length)
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

// testers adds the processor time of all testers, of the processors that they may use, in a step or, without a name,
// the whole run.
func (f values) testers(parts []*result.Result, step string) {
	var used, all float64
	for _, p := range parts {
		for i := range p.Rows {
			if row := &p.Rows[i]; step == "" || row.Step == step {
				used += float64(row.Tester.CPU)
				all += float64(row.Length) * float64(row.Tester.Cores)
			}
		}
	}
	if all > 0 {
		f["tester.cpu"] = 100 * used / all
	}
}

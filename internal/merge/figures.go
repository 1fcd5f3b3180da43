package merge

import (
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

// metrics returns the metrics of a step, or of the whole of several steps, or of a group in them. Unknown
// metrics are missing.
func (s *shards) metrics(step *plannedStep, group string) map[string]float64 {
	of, from, steps := *s.merged, int64(0), s.plan.Steps
	if step != nil {
		steps = []plannedStep{*step}
	}
	if !slices.ContainsFunc(steps, func(p plannedStep) bool { return !p.alone(group) }) {
		group = "" // it is all that there is
	}
	if len(steps) < len(s.plan.Steps) {
		at := stepOf(s.merged, step.Name)
		if at == nil {
			return nil
		}
		of, from = result.Result{Total: at.Counts, Latencies: at.Latencies, Figures: at.Figures, End: at.End}, at.Start
		if step.Warmup == "" {
			of.Measured = &at.Counts
		}
	}
	if !slices.ContainsFunc(steps, func(p plannedStep) bool {
		return slices.ContainsFunc(p.Groups, func(g plannedGroup) bool { return g.Reconnect })
	}) || len(steps) < len(s.plan.Steps) {
		of.Outages = nil
	} else if of.Outages == nil {
		of.Outages = []result.Outage{}
	}
	if group != "" {
		sums, ok := s.group(steps, group)
		if !ok {
			return nil
		}
		of.Total, of.Measured, of.Latencies = sums.Counts, &sums.Measured, sums.Latencies
		of.Figures, _ = s.figures(steps, group)
		if f := of.Figures; step != nil && step.reads() { // a part waits for its end with nothing to read
			of.Figures = &result.Figures{
				MinimumCompleted: f.MinimumCompleted, MaximumCompleted: f.MaximumCompleted,
				MinimumReceived: f.MinimumReceived, MaximumReceived: f.MaximumReceived,
			}
		}
	}
	of.Complete, of.Stalls, of.Rows = true, s.stalls(from, of.End, group), s.used(steps)
	return of.Metrics()
}

// group returns the sums of a group over steps. It is false if the results have no measured counts of the group.
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

// stalls returns the stalls that began in a time, of all groups or of one. They are nil if they are not known.
func (s *shards) stalls(from, to int64, group string) []result.Stall {
	if s.plan.Stalls == "" || s.merged.MoreStalls > 0 {
		return nil
	}
	list := []result.Stall{}
	for _, stall := range s.merged.Stalls {
		switch {
		case stall.Time < from || stall.Time > to || stall.Warmup:
		case group != "" && stall.Group == "": // of several groups, and perhaps of this one
			return nil
		case group == "" || stall.Group == group:
			list = append(list, stall)
		}
	}
	return list
}

// used returns a row with the processor time of all testers in these steps, and all that they may use.
func (s *shards) used(steps []plannedStep) []result.Row {
	use := result.Row{Tester: result.Tester{Cores: 1}}
	for _, p := range s.parts {
		for i := range p.Rows {
			row := &p.Rows[i]
			if slices.ContainsFunc(steps, func(s plannedStep) bool { return s.Name == row.Step }) {
				use.Tester.CPU += row.Tester.CPU
				use.Length += row.Length * int64(row.Tester.Cores)
			}
		}
	}
	return []result.Row{use}
}

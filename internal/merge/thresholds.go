package merge

import (
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// planned has the parts of the plan of a result that a merge needs.
type planned struct {
	Verify     bool
	Allow      []string
	Stalls     string `json:"stall-threshold"`
	Thresholds []string
	Steps      []plannedStep
}

type plannedStep struct {
	Name, Duration, Warmup string
	Thresholds             []string
	Groups                 []struct {
		Name                 string
		Producers, Consumers int
		Rate                 string
		Reconnect            bool
	}
}

// judgeAll holds the merged result against the thresholds of the plan and others, and sets the status that a run with
// these figures has.
func (s *shards) judgeAll(others []threshold.Threshold) error {
	m := s.merged
	list, err := s.judge(s.plan.Thresholds, others, s.plan.Steps)
	if err != nil {
		return err
	}
	m.Thresholds = list
	for i := range s.plan.Steps {
		if list, err = s.judge(s.plan.Steps[i].Thresholds, nil, s.plan.Steps[i:i+1]); err != nil {
			return err
		}
		for _, o := range list {
			o.Step = s.plan.Steps[i].Name
			m.Thresholds = append(m.Thresholds, o)
		}
	}
	if o := &m.Outcome; result.Graver(o.Status, result.StatusThreshold) == result.StatusThreshold {
		switch {
		case !o.Success:
			o.Status = result.StatusFailed
		case o.Aborted, threshold.Fail(m.Thresholds):
			o.Status = result.StatusThreshold
		case o.Interrupted:
			o.Status = result.StatusInterrupted
		default:
			o.Status = result.StatusOK
		}
	}
	return nil
}

// judge judges thresholds of the plan, and others, by the metrics of all steps or of one. In a run of one step both
// have the same.
func (s *shards) judge(
	texts []string, others []threshold.Threshold, steps []plannedStep,
) ([]result.Threshold, error) {
	var list []threshold.Threshold
	for _, text := range texts {
		t, err := threshold.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("a threshold of the plan, %q: %w", text, err)
		}
		list = append(list, t)
	}
	list = append(list, others...)
	all := map[string]float64{}
	for _, t := range list {
		prefix, group := "", t.Metric.Group
		if group != "" {
			prefix = threshold.GroupPrefix + group + "."
		}
		for name, v := range s.metrics(steps, group) {
			all[prefix+name] = v
		}
	}
	target := func(group string) float64 {
		if len(steps) != 1 {
			return 0
		}
		return steps[0].target(stepOf(s.merged, steps[0].Name).Figures, group)
	}
	return threshold.Judge(list, target, all), nil
}

// metrics returns the metrics of some or all steps, or of a group in them. Unknown metrics are missing.
func (s *shards) metrics(steps []plannedStep, group string) map[string]float64 {
	of, from := *s.merged, int64(0)
	if len(steps) < len(s.plan.Steps) {
		at := stepOf(s.merged, steps[0].Name)
		if at.Name == "" { // the run ended before it
			return nil
		}
		of = result.Result{
			Total: at.Counts, Measured: measured(&steps[0], at), Latencies: at.Latencies, Figures: at.Figures,
			End: at.End,
		}
		from = at.Start
	}
	alone := true
	for i := range steps {
		alone = alone && steps[i].alone(group)
		if of.Outages == nil && steps[i].has("")&threshold.Reconnection != 0 && len(of.Parts) > 0 {
			of.Outages = []result.Outage{}
		}
	}
	if alone {
		group = ""
	} else if !s.setGroup(&of, steps, group) {
		return nil
	}
	of.Complete, of.Stalls, of.Rows = true, s.stalls(from, of.End, group), s.used(steps)
	return of.Metrics()
}

// measured returns the measured counts of a step: all of them if there was no warm-up; nil if unknown, as killed parts
// lack them.
func measured(p *plannedStep, at *result.Step) *result.Counts {
	if at.Measured == nil && p.Warmup == "" {
		return &at.Counts
	}
	return at.Measured
}

// grouped reports whether a step of the merged result has the groups of all parts: a killed part does not list them.
func (s *shards) grouped(at *result.Step) bool {
	return len(at.Groups) > 0 && !slices.ContainsFunc(s.parts, func(r *result.Result) bool {
		part := stepOf(r, at.Name)
		return part.Name != "" && len(part.Groups) == 0
	})
}

// setGroup sets the counts, latencies and rates of a group in steps. It is false if the results have no measured counts
// of the group.
func (s *shards) setGroup(of *result.Result, steps []plannedStep, name string) (known bool) {
	var sum result.Group
	for i := range steps {
		p, at := &steps[i], stepOf(s.merged, steps[i].Name)
		if p.has(name) == 0 || at.Name == "" {
			continue
		}
		k := slices.IndexFunc(at.Groups, func(g result.Group) bool { return g.Name == name })
		switch {
		case k >= 0 && s.grouped(at):
			sum.Add(&at.Groups[k])
		case p.alone(name) && measured(p, at) != nil: // results do not list a group that is all of its step
			sum.Add(&result.Group{Counts: at.Counts, Measured: *measured(p, at), Latencies: at.Latencies})
		default:
			return false
		}
		known = true
	}
	of.Total, of.Measured, of.Latencies, of.Figures = sum.Counts, &sum.Measured, sum.Latencies, s.figures(steps, name)
	return known
}

// stalls returns the stalls that began in a time, of all groups or of one; nil if they are unknown.
func (s *shards) stalls(from, to int64, group string) []result.Stall {
	if s.plan.Stalls == "" || s.merged.MoreStalls > 0 {
		return nil
	}
	list := []result.Stall{}
	for _, stall := range s.merged.Stalls {
		switch {
		case stall.Time < from || stall.Time > to:
		case group != "" && stall.Group == "": // of several groups, and perhaps of this one
			return nil
		case group == "" || stall.Group == group:
			list = append(list, stall)
		}
	}
	return list
}

// used returns a row with the processor time of all parts in these steps, and all that they may use.
func (s *shards) used(steps []plannedStep) []result.Row {
	use := result.Row{Tester: result.Tester{Cores: 1}}
	for _, p := range s.parts {
		for _, row := range p.Rows {
			if slices.ContainsFunc(steps, func(s plannedStep) bool { return s.Name == row.Step }) {
				use.Tester.CPU += row.Tester.CPU
				use.Length += row.Length * int64(row.Tester.Cores)
			}
		}
	}
	return []result.Row{use}
}

// target returns the target rate of a step with these figures, or of a group in it, in messages per second; 0 without
// one.
func (p *plannedStep) target(f *result.Figures, group string) (perSecond float64) {
	if f == nil {
		return 0
	}
	warmup, _ := time.ParseDuration(p.Warmup) // 0 without one
	loaded := time.Duration(f.Span)*time.Microsecond + warmup
	for _, g := range p.Groups {
		if g.Producers == 0 || group != "" && g.Name != group {
			continue
		}
		rate, err := load.ParseSchedule(g.Rate)
		if err != nil { // it has none
			return 0
		}
		perSecond += rate.Average(loaded)
	}
	return perSecond
}

// stepOf returns a step of a result, or an empty one without such a step.
func stepOf(r *result.Result, name string) *result.Step {
	if i := slices.IndexFunc(r.Steps, func(s result.Step) bool { return s.Name == name }); i >= 0 {
		return &r.Steps[i]
	}
	return &result.Step{}
}

// has returns the roles of the step, or of a group in it, and whether it reconnects.
func (p *plannedStep) has(group string) (has result.Role) {
	for _, g := range p.Groups {
		if group == "" || g.Name == group {
			has |= threshold.Producers.If(g.Producers > 0) | threshold.Consumers.If(g.Consumers > 0) |
				threshold.Reconnection.If(g.Reconnect)
		}
	}
	return has
}

// alone reports whether the group, or all groups, are all of the step.
func (p *plannedStep) alone(group string) bool {
	return group == "" || len(p.Groups) == 1 && p.Groups[0].Name == group
}

// listed reports whether rows list the group by its name, and not among others.
func (s *shards) listed(group string) bool {
	var names []string
	for i := range s.plan.Steps {
		for _, g := range s.plan.Steps[i].Groups {
			if !slices.Contains(names, g.Name) {
				names = append(names, g.Name)
			}
		}
	}
	return slices.Index(names, group) < result.MaxRowGroups
}

// counts returns the counts of a row of the step, or of a group in it; nil without any.
func (p *plannedStep) counts(row *result.Row, group string) *result.Counts {
	if p.alone(group) {
		return &row.Counts
	}
	if i := slices.IndexFunc(row.Groups, func(g result.RowGroup) bool { return g.Name == group }); i >= 0 {
		return &row.Groups[i].Counts
	}
	return nil
}

package merge

import (
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// planned has the parts of the plan of a result that a merge needs.
type planned struct {
	Verify        bool
	Allow         []string
	FailOnForeign bool   `json:"fail-on-foreign"`
	Stalls        string `json:"stall-threshold"`
	Thresholds    []string
	Steps         []plannedStep
}

type plannedStep struct {
	Name, Duration, Warmup string
	Thresholds             []string
	Groups                 []plannedGroup
}

type plannedGroup struct {
	Name                 string
	Producers, Consumers int
	Rate                 string
	Reconnect            bool
}

// judge holds the merged results against the thresholds of the plan and others, and sets the status that a run with
// these figures has. The verdicts of the parts, each about its own figures, stay with these.
func (m *Merged) judge(s *shards, others []threshold.Threshold) error {
	list, err := parsed(s.plan.Thresholds)
	if err != nil {
		return err
	}
	m.Judged = s.judge(append(list, others...), nil)
	for i := range s.plan.Steps {
		step := &s.plan.Steps[i]
		if list, err = parsed(step.Thresholds); err != nil {
			return err
		}
		for _, o := range s.judge(list, step) {
			o.Step = step.Name
			m.Judged = append(m.Judged, o)
		}
	}
	m.leaveUnknown(s.apart)
	m.Thresholds = report.Thresholds(m.Judged)
	if o := &m.Outcome; result.Graver(o.Status, result.StatusThreshold) == result.StatusThreshold {
		switch {
		case !o.Success:
			o.Status = result.StatusFailed
		case o.Aborted, slices.ContainsFunc(m.Judged, func(o threshold.Outcome) bool { return o.Broken() }):
			o.Status = result.StatusThreshold
		case o.Interrupted:
			o.Status = result.StatusInterrupted
		default:
			o.Status = result.StatusOK
		}
	}
	return nil
}

// leaveUnknown takes the demands out that the results do not tell over all hosts, if each host alone has kept them, and
// says so. Demands on rates stay if the parts were apart.
func (m *Merged) leaveUnknown(apart bool) {
	m.Judged = slices.DeleteFunc(m.Judged, func(o threshold.Outcome) bool {
		text := o.Threshold.String()
		if o.Known || apart && o.Threshold.Metric.Unit == threshold.PerSecond {
			return false
		}
		for i := range m.Parts {
			if !slices.ContainsFunc(m.Parts[i].Thresholds, func(t result.Threshold) bool {
				return t.Threshold == text && t.Step == o.Step && t.Kept
			}) {
				return false
			}
		}
		m.Outcome.Warnings = append(m.Outcome.Warnings, fmt.Sprintf("the threshold %q%s cannot be judged over all hosts: "+
			"each of them has kept it by its own figures", text, ofStep(o.Step)))
		return true
	})
}

func ofStep(name string) string {
	if name == "" {
		return ""
	}
	return " of step " + name
}

func parsed(texts []string) (list []threshold.Threshold, err error) {
	for _, text := range texts {
		t, err := threshold.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("a threshold of the plan, %q: %w", text, err)
		}
		list = append(list, t)
	}
	return list, nil
}

// judge judges thresholds of a step or, without one, of the whole run. In a run of one step both have the same figures.
func (s *shards) judge(list []threshold.Threshold, step *plannedStep) []threshold.Outcome {
	if step == nil && len(s.plan.Steps) == 1 {
		step = &s.plan.Steps[0]
	}
	all, known := map[string]float64{}, map[string]bool{} // by group
	for i := range list {
		group, prefix := list[i].Metric.Group, ""
		if known[group] {
			continue
		}
		if known[group] = true; group != "" {
			prefix = threshold.GroupPrefix + group + "."
		}
		for name, v := range s.metrics(step, group) {
			all[prefix+name] = v
		}
	}
	return threshold.Judge(list, func(group string) float64 { return s.target(step, group) }, all)
}

// target returns the target rate of a step, or of a group in it, in messages per second; 0 without one.
func (s *shards) target(step *plannedStep, group string) (perSecond float64) {
	if step == nil {
		return 0
	}
	at := stepOf(s.merged, step.Name)
	if at == nil || at.Figures == nil {
		return 0
	}
	loaded := time.Duration(at.Figures.Span) * time.Microsecond
	if warmup, err := time.ParseDuration(step.Warmup); err == nil {
		loaded += warmup
	}
	for _, g := range step.Groups {
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

func stepOf(m *result.Result, name string) *result.Step {
	if i := slices.IndexFunc(m.Steps, func(s result.Step) bool { return s.Name == name }); i >= 0 {
		return &m.Steps[i]
	}
	return nil
}

func (p *plannedStep) has(group string) bool {
	return slices.ContainsFunc(p.Groups, func(g plannedGroup) bool { return g.Name == group })
}

// alone reports whether the group is all of the step.
func (p *plannedStep) alone(group string) bool {
	return len(p.Groups) == 1 && p.Groups[0].Name == group
}

// roles reports whether the step, or a group in it, sends and receives.
func (p *plannedStep) roles(group string) (produces, consumes bool) {
	for _, g := range p.Groups {
		if group == "" || g.Name == group {
			produces, consumes = produces || g.Producers > 0, consumes || g.Consumers > 0
		}
	}
	return produces, consumes
}

// reads reports whether the step lasts until a backlog is read.
func (p *plannedStep) reads() bool {
	produces, _ := p.roles("")
	return p.Duration == "" && p.Warmup == "" && !produces
}

// counter returns the counts of a row of the step: of the group, if the step has others. Counts after the steps of the
// group are included.
func (p *plannedStep) counter(group string) counter {
	if group == "" || p.alone(group) {
		return func(row *result.Row) *result.Counts { return &row.Counts }
	}
	return func(row *result.Row) *result.Counts {
		i := slices.IndexFunc(row.Groups, func(g result.RowGroup) bool { return g.Name == group })
		if i < 0 {
			return nil
		}
		return &row.Groups[i].Counts
	}
}

package merge

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// planned has the parts of the plan of a result that a merge needs.
type planned struct {
	Verify        bool          `json:"verify"`
	Allow         []string      `json:"allow"`
	FailOnForeign bool          `json:"fail-on-foreign"`
	Stalls        string        `json:"stall-threshold"`
	Thresholds    []string      `json:"thresholds"`
	Steps         []plannedStep `json:"steps"`
}

type plannedStep struct {
	Name       string         `json:"name"`
	Duration   string         `json:"duration"`
	Warmup     string         `json:"warmup"`
	Thresholds []string       `json:"thresholds"`
	Groups     []plannedGroup `json:"groups"`
}

type plannedGroup struct {
	Name      string `json:"name"`
	Producers int    `json:"producers"`
	Consumers int    `json:"consumers"`
	Rate      string `json:"rate"`
	Reconnect bool   `json:"reconnect"`
}

func planOf(m *result.Result) (p planned, err error) {
	if len(m.Plan) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(m.Plan, &p); err != nil {
		return p, fmt.Errorf("read the plan: %w", err)
	}
	return p, nil
}

// judge holds the merged results against the thresholds of the plan and others, and sets the status that a run with
// these figures has. The verdicts of the parts, each about its own figures, stay with these.
func (m *Merged) judge(parts []*result.Result, plan *planned, others []threshold.Threshold) error {
	whole, err := parsed(plan.Thresholds)
	if err != nil {
		return err
	}
	steps := make([][]threshold.Threshold, len(plan.Steps))
	for i := range plan.Steps {
		if steps[i], err = parsed(plan.Steps[i].Thresholds); err != nil {
			return err
		}
	}
	j := judging{merged: m.Result, parts: parts, plan: plan}
	for _, p := range parts {
		j.starts = append(j.starts, p.Start-ahead(m.Result, p))
	}
	m.Judged = j.judge(append(whole, others...), nil)
	for i := range steps {
		if len(steps[i]) == 0 {
			continue
		}
		list := j.judge(steps[i], &plan.Steps[i])
		for k := range list {
			list[k].Step = plan.Steps[i].Name
		}
		m.Judged = append(m.Judged, list...)
	}
	m.leaveUnknown(j.apart)
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
		if o.Known || len(m.Parts) == 0 || apart && o.Threshold.Metric.Unit == threshold.PerSecond {
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

// judging has the results that thresholds are judged by.
type judging struct {
	merged *result.Result
	parts  []*result.Result
	starts []int64 // of the loads of the parts, by one clock
	plan   *planned
	apart  bool // the parts did not measure together: rates are unknown, whatever each part has
}

// judge judges thresholds of a step or, without one, of the whole run. In a run of one step both have the same figures.
func (j *judging) judge(list []threshold.Threshold, step *plannedStep) []threshold.Outcome {
	if step == nil && len(j.plan.Steps) == 1 {
		step = &j.plan.Steps[0]
	}
	known := map[string]values{} // by group
	return threshold.Judge(list, func(group string) float64 { return j.target(step, group) },
		func(name string) (float64, bool) {
			metric, _ := threshold.Find(name)
			f, ok := known[metric.Group]
			if !ok {
				f = j.figures(step, metric.Group)
				known[metric.Group] = f
			}
			if metric.Group != "" {
				name = strings.TrimPrefix(name, threshold.GroupPrefix+metric.Group+".")
			}
			v, ok := f[name]
			return v, ok
		})
}

// figures returns the figures of a step, or of the whole of several steps, or of a group of a step. Figures that the
// results do not tell are missing.
func (j *judging) figures(step *plannedStep, group string) values {
	m := j.merged
	whole := step == nil || len(j.plan.Steps) == 1
	s := scope{total: &m.Total, measured: m.Measured, latencies: &m.Latencies}
	from, to := int64(0), m.End
	if m.Figures != nil {
		s.averages = m.Figures.Averages
	}
	if step != nil {
		at := stepOf(m, step.Name)
		if at == nil {
			return nil
		}
		if !whole {
			s, from, to = step.scope(at), at.Start, at.End
		}
	}
	rows := seconds{parts: j.parts, starts: j.starts, of: func(row *result.Row) *result.Counts { return &row.Counts }}
	if step != nil {
		rows.step, rows.read = step.Name, step.reads()
	}
	if group != "" && !j.plan.alone(step, group) {
		if !s.ofGroup(m, j.plan, step, group) {
			return nil
		}
		rows.of = groupIn(group)
	}
	together := result.MeasureTogether(j.parts, j.starts, rows.step, rows.of)
	if s.group && !rows.read { // a part that reads a backlog waits for its end with nothing to read
		s.averages = together.Averages()
	}
	f := s.figures()
	switch {
	case together.Apart:
		j.apart = true
	case step == nil && len(j.plan.Steps) > 0:
		j.extremes(f, rows, group)
	default:
		rows.extremes(f)
	}
	if group != "" {
		return f
	}
	f.testers(j.parts, rows.step)
	if j.plan.Stalls != "" {
		f.stalls(m, from, to)
	}
	if whole {
		f.whole(m)
		if j.plan.reconnects() {
			f.reconnections(m.Outages, m.MoreOutages)
		}
	}
	return f
}

// extremes adds the lowest and highest rates over the steps of a run, or of a group in it: each side over the steps in
// which it takes part.
func (j *judging) extremes(f values, rows seconds, group string) {
	for i := range j.plan.Steps {
		step, of := &j.plan.Steps[i], values{}
		rows.step, rows.read = step.Name, step.reads()
		rows.extremes(of)
		for _, side := range []struct {
			rate    string
			workers func(*plannedGroup) int
		}{
			{"completed", func(g *plannedGroup) int { return g.Producers }},
			{"received", func(g *plannedGroup) int { return g.Consumers }},
		} {
			if !slices.ContainsFunc(step.Groups, func(g plannedGroup) bool {
				return (group == "" || g.Name == group) && side.workers(&g) > 0
			}) {
				continue
			}
			for name, wider := range map[string]func(a, b float64) float64{
				side.rate + ".min": math.Min, side.rate + ".max": math.Max,
			} {
				if v, ok := of[name]; ok {
					if known, is := f[name]; is {
						v = wider(v, known)
					}
					f[name] = v
				}
			}
		}
	}
}

// target returns the rate that a step, or a group in it, was to have, in messages per second; 0 if there is none.
func (j *judging) target(step *plannedStep, group string) (perSecond float64) {
	if step == nil {
		return 0
	}
	at := stepOf(j.merged, step.Name)
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
	if len(j.merged.Parts) > 0 && j.merged.Parts[0].Shard == nil { // runs of their own: each had that rate
		perSecond *= float64(len(j.merged.Parts))
	}
	return perSecond
}

func stepOf(m *result.Result, name string) *result.Step {
	if i := slices.IndexFunc(m.Steps, func(s result.Step) bool { return s.Name == name }); i >= 0 {
		return &m.Steps[i]
	}
	return nil
}

// scope is that of one of several steps.
func (p *plannedStep) scope(at *result.Step) scope {
	s := scope{total: &at.Counts, latencies: &at.Latencies}
	if at.Figures != nil {
		s.averages = at.Figures.Averages
	}
	if p.Warmup == "" {
		s.measured = &at.Counts
	}
	return s
}

func (p *plannedStep) has(group string) bool {
	return slices.ContainsFunc(p.Groups, func(g plannedGroup) bool { return g.Name == group })
}

// inRows tells whether rows have figures of the group under its name: they have those of the first groups of the plan.
func (p *planned) inRows(group string) bool {
	var names []string
	for i := range p.Steps {
		for _, g := range p.Steps[i].Groups {
			if !slices.Contains(names, g.Name) {
				names = append(names, g.Name)
			}
		}
	}
	i := slices.Index(names, group)
	return i >= 0 && i < result.MaxRowGroups
}

// alone tells whether the group is all of the step, or of all steps.
func (p *planned) alone(step *plannedStep, group string) bool {
	if step != nil {
		return step.is(group)
	}
	return !slices.ContainsFunc(p.Steps, func(s plannedStep) bool { return !s.is(group) })
}

// is tells whether the group is all of the step.
func (p *plannedStep) is(group string) bool { return len(p.Groups) == 1 && p.Groups[0].Name == group }

// reads tells whether the step lasts until a backlog is read.
func (p *plannedStep) reads() bool {
	return p.Duration == "" && p.Warmup == "" && !slices.ContainsFunc(p.Groups,
		func(g plannedGroup) bool { return g.Producers > 0 })
}

func (p *planned) reconnects() bool {
	return slices.ContainsFunc(p.Steps, func(s plannedStep) bool {
		return slices.ContainsFunc(s.Groups, func(g plannedGroup) bool { return g.Reconnect })
	})
}

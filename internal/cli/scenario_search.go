package cli

import (
	"errors"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/internal/threshold"
)

// newSearch returns the search of a scenario, with the plan of its first load.
func (a *app) newSearch(of *source, file *scenario.File) (prepared, error) {
	if of.sweep != (sweepFlags{}) {
		return prepared{}, &plan.Mistake{
			Text: of.path + " is a search: --repeats, --seed and --changed are for sweeps", Hint: "leave them out",
		}
	}
	ready, err := a.planOf(file, of)
	if err != nil {
		return prepared{}, err
	}
	p, v := ready.plan, ready.settings
	r := resolver{Values: v}
	r.searchMistakes()
	if len(p.Steps) != 1 || p.Steps[0].Duration <= 0 {
		r.refuse("duration: 6s, and no other steps", "%s: a search wants one step with a duration", of.path)
	}
	if len(r.errs) > 0 {
		return prepared{}, errors.Join(r.errs...)
	}
	step := &p.Steps[0]
	f := &maxFinder{
		a: a, measured: (step.Duration - step.Warmup).Round(time.Millisecond), dir: v.ResultDir, json: v.JSONFile,
		silent: v.Silent,
	}
	for i := range file.Search.Thresholds {
		t, err := threshold.Parse(file.Search.Thresholds[i].Text)
		if err != nil {
			return prepared{}, err // already checked
		}
		f.demands = append(f.demands, t)
	}
	f.asked = len(f.demands)
	f.demands = append(append(f.demands, p.Thresholds...), step.Thresholds...)
	if from, err := load.ParseSchedule(file.Search.From); err == nil {
		f.first = from.Peak()
	}
	f.run = func(rate string, hold bool, dir string) (run.Ending, error) {
		return a.probe(f, of, file.AtRate(rate), hold, dir)
	}
	ready.search = f
	return ready, f.queueing(p.Roles() == plan.Client)
}

// probe runs the load of a scenario that a search has given a rate.
func (a *app) probe(f *maxFinder, of *source, file *scenario.File, hold bool, dir string) (run.Ending, error) {
	ready, err := a.planOf(file, of)
	if err != nil {
		return run.Ending{}, err
	}
	p, step, s := ready.plan, &ready.plan.Steps[0], ready.settings
	if hold {
		step.Duration = step.Warmup + holdTimes*(step.Duration-step.Warmup)
	}
	if p.Thresholds, err = f.demandsOf(targetOf(step), hold); err != nil {
		return run.Ending{}, err
	}
	step.Thresholds = nil
	if err := p.Validate(a.driver); err != nil {
		return run.Ending{}, err
	}
	s.Silent, s.JSONFile = true, ""
	into(p, s, dir)
	return a.newRun(p, s).Do(), nil
}

// targetOf returns the rate of all groups of a step together.
func targetOf(step *plan.Step) (perSecond float64) {
	for _, g := range step.Groups {
		if g.Role.Produces() {
			perSecond += g.Rate.Average(step.Duration)
		}
	}
	return perSecond
}

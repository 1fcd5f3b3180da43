package cli

import (
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/search"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/threshold"
)

// searchable refuses plans that a search cannot use.
func searchable(p *plan.Plan) (errs []error) {
	if len(p.Steps) != 1 || p.Steps[0].Duration <= 0 {
		errs = append(errs, &plan.Mistake{
			Text: "a search wants one step with a duration",
			Hint: "duration: 6s, and no other steps but those with once: true",
		})
	}
	return errs
}

// searchOne searches for the highest rate of a cell, and returns the exit status.
func (w *sweeper) searchOne(r *sweep.Run, ready prepared) int {
	step := &ready.plan.Steps[0]
	f := &maxFinder{
		a: w.a, measured: (step.Duration - step.Warmup).Round(time.Millisecond), dir: ready.settings.ResultDir,
		silent: ready.settings.Silent,
	}
	for i := range w.file.Search.Thresholds {
		t, err := threshold.Parse(w.file.Search.Thresholds[i].Text)
		if err != nil {
			w.a.errors.print(err) // already checked
			return exitUsage
		}
		f.demands = append(f.demands, t)
	}
	f.asked = len(f.demands)
	f.demands = append(append(f.demands, ready.plan.Thresholds...), step.Thresholds...)
	if from, err := load.ParseSchedule(w.file.Search.From); err == nil {
		f.first = from.Peak()
	}
	if err := f.queueing(ready.plan.Roles() == plan.Client); err != nil {
		w.a.errors.print(err)
		return exitUsage
	}
	f.run = func(rate string, hold bool, dir string) (run.Ending, error) {
		return w.probe(f, r, rate, hold, dir)
	}
	found, status := f.find()
	noteFound(r, found, status)
	return status
}

// noteFound records the outcome of a search. Only a rate that was held is a figure.
func noteFound(r *sweep.Run, found *search.Found, status int) {
	r.State = sweep.Unfinished
	if status == exitOK || status == exitThreshold || status == exitFailed && len(found.Points) > 0 {
		r.State, r.Status = sweep.Done, status
	}
	r.Limits, r.Figures = []sweep.Limit{limitOf(found)}, nil
	r.NotHeld = status != exitOK || !found.Held
	r.AtLeast = !r.NotHeld && found.AtLeast()
	if !r.NotHeld {
		r.Figures = map[string]float64{sweep.Found: found.Rate}
	}
}

// limitOf returns the limit of the rate that a search found.
func limitOf(found *search.Found) sweep.Limit {
	text := found.Failed.Limit
	if text == "" {
		text = found.Failed.Why
	}
	kind, _, _ := strings.Cut(text, " (")
	return sweep.Limit{Kind: kind, Text: text}
}

// probe runs a load of one rate.
func (w *sweeper) probe(f *maxFinder, r *sweep.Run, rate string, hold bool, dir string) (run.Ending, error) {
	ready, err := w.build(r.Values, rate)
	if err != nil {
		return run.Ending{}, err
	}
	ready.plan = repeated(ready.plan)
	if err := w.separate(r, ready); err != nil {
		return run.Ending{}, &endingError{w.notSeparated(err)}
	}
	p, step := ready.plan, &ready.plan.Steps[0]
	if hold {
		step.Duration = step.Warmup + holdTimes*(step.Duration-step.Warmup)
	}
	if p.Thresholds, err = f.demandsOf(targetOf(step), hold); err != nil {
		return run.Ending{}, err
	}
	step.Thresholds = nil
	if err := p.Validate(); err != nil {
		return run.Ending{}, err
	}
	p.MakeBodies()
	s := *ready.settings
	s.Silent = true
	into(p, &s, dir)
	of := w.a.newRun(p, &s)
	of.Shared = w.shared
	return of.Do(), nil
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

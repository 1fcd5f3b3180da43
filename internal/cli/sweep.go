package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

// source is a scenario with its flags, from which the plans of all cells are made.
type source struct {
	*config.Scenario
	runSettings
	in    *input // of the loads
	set   map[string]string
	scale float64
}

// plan makes the plan of the scenario or a cell of it.
func (of *source) plan(cell map[string]string) (config.Ready, error) {
	ready, err := of.Plan(of.in.given, of.in.table, cell)
	if err != nil {
		return ready, err
	}
	if of.scale < 1 {
		ready.Plan.Scale(of.scale)
		ready.Notes = append(ready.Notes, fmt.Sprintf("--scale %v: the metrics are those of a try", of.scale))
	}
	return ready, nil
}

// progress prints how a sweep or a search proceeds, and its outcome to a writer.
func (a *app) progress(to io.Writer) sweep.Progress {
	return sweep.Progress{
		Say: a.errors.say,
		Print: func(line string) {
			if line = a.secrets.Line(line); !run.UTF8(a.Environ) {
				line = report.ASCII(line)
			}
			_, _ = fmt.Fprintln(to, line)
		},
		Fail:  func(err error) { a.errors.print(err) },
		Ended: func(_ string, e *run.Ending) { a.printEnding(*e) },
	}
}

// newSweep returns the sweep of a scenario, with the plan of its first cell.
func (a *app) newSweep(of *source) (prepared, error) {
	s, errs := new(of.Sweep), []error(nil)
	s.Progress = a.progress(a.Stdout)
	s.Repeats = cmp.Or(of.Repeats, s.Repeats)
	if of.scale < 1 {
		s.Repeats = 1
	}
	if s.Shuffled {
		s.Seed = rand.Uint64() % 1e6 //nolint:gosec // an order, not a secret
	}
	for i := range of.Axes {
		values, err := of.valuesOf(&of.Axes[i])
		errs = append(errs, config.Parts(err)...)
		s.Axes = append(s.Axes, record.Axis{Name: of.Axes[i].Name, Values: values})
	}
	s.Cells = record.Cells(s.Axes)
	if len(errs) > 0 {
		return prepared{}, errors.Join(errs...)
	}
	var first *prepared
	s.Build = func(values map[string]string) (*run.Run, error) {
		ready, err := of.plan(values)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = &prepared{Ready: ready}
		}
		one := a.newRun(ready)
		one.Outputs.Silent = one.Outputs.Silent || !ready.Values.Has("format")
		return one, nil
	}
	if err := s.Check(); err != nil {
		return prepared{}, err
	}
	s.Silent, first.sweep = first.Values.Outputs.Silent, s
	return *first, errors.Join(ofOneRun(first.Values, "json", "metrics-linger", "find-max")...)
}

// valuesOf returns the values of an axis. Variables that a flag sets do not vary.
func (of *source) valuesOf(a *config.Axis) ([]string, error) {
	values := a.Values
	if v, pinned := of.set[a.Name]; pinned {
		values = []string{v}
	}
	if slices.ContainsFunc(values, func(v string) bool { text := a.Name + "=" + v; return safetext.URLs(text) != text }) {
		return nil, of.Wrong(a.Pos, "a value of the axis "+a.Name+" has a password, which outputs would show",
			"give the password by --password or PERFMQ_PASSWORD")
	}
	if of.scale < 1 && len(values) > 2 {
		values = []string{values[0], values[len(values)-1]}
	}
	return values, nil
}

// Defaults of --find-max.
const (
	searchDuration   = 6 * time.Second
	searchWarmup     = time.Second
	searchMaxPending = 1000 // high enough that the broker is the limit
)

// searchDefaults sets the defaults of a search.
func searchDefaults(v *config.Values) {
	if !v.Has("duration") {
		v.Step.Duration = searchDuration
	}
	if !v.Has("warmup") {
		v.Step.Warmup = min(searchWarmup, v.Step.Duration/4)
	}
	if !v.Has("max-pending") {
		v.Group.MaxPending = searchMaxPending
	}
}

// newSearch returns the search for the highest rate of a plan; again reads the plan once more. The plan has one step
// and one group of producers.
func (a *app) newSearch(ready config.Ready, again func() (config.Ready, error)) (*sweep.Search, []error) {
	v, p := ready.Values, ready.Plan
	errs := ofOneRun(v, "message-count", "metrics", "web", "format", "show-latency", "run-id")
	refuse := func(hint, format string, args ...any) {
		errs = append(errs, plan.Wrong(hint, format, args...))
	}
	if dir := v.Outputs.Result; dir != "" {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			refuse("name another folder", "--result %s: the folder is not empty", dir)
		}
	}
	s := &sweep.Search{
		First: a.newRun(ready), Thresholds: v.FindMax, Silent: v.Outputs.Silent, Progress: a.progress(a.Stdout),
	}
	if v.Outputs.JSON == run.Standard {
		s.Progress = a.progress(a.Stderr)
	}
	g := searched(p)
	if g == nil {
		refuse("", "a search needs one step with a duration and one group of producers")
		return s, errs
	}
	if _, constant := g.Rate.Constant(); !g.Rate.IsZero() && !constant {
		refuse("give --rate one number", "--find-max does not work with a rate in segments")
	}
	s.From = g.Rate.Peak()
	s.Build = func(rate string) (*run.Run, error) {
		ready, err := again()
		if err != nil {
			return nil, err
		}
		g := searched(ready.Plan)
		if g.Rate.Schedule, err = load.ParseSchedule(rate); err == nil && g.Poisson {
			g.Rate.Schedule, err = g.Rate.Poisson()
		}
		return a.newRun(ready), err
	}
	return s, errs
}

// searched returns the group with the rate that a search varies; nil if there is none, or several.
func searched(p *plan.Plan) *plan.Group {
	if len(p.Steps) != 1 || p.Steps[0].Duration <= 0 {
		return nil
	}
	groups := slices.DeleteFunc(slices.Clone(p.Steps[0].Groups), func(g *plan.Group) bool { return !g.Role.Produces() })
	if len(groups) != 1 {
		return nil
	}
	return groups[0]
}

// search carries a search out, writes --json, and returns the exit status.
func (a *app) search(s *sweep.Search, jsonFile string) int {
	found, status := s.Do()
	if jsonFile != "" {
		if err := a.writeJSON(jsonFile, found); err != nil {
			a.errors.print(err)
			status = result.Graver(status, result.StatusFailed)
		}
	}
	return status
}

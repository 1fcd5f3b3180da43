package cli

import (
	"os"
	"time"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/pkg/result"
)

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
		refuse("", "a search wants one step with a duration and one group of producers")
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
		searched(ready.Plan).Rate.Schedule, err = load.ParseSchedule(rate)
		return a.newRun(ready), err
	}
	return s, errs
}

// searched returns the group with the rate that a search varies; nil if there is none, or several.
func searched(p *plan.Plan) *plan.Group {
	if len(p.Steps) != 1 || p.Steps[0].Duration <= 0 {
		return nil
	}
	var producers []*plan.Group
	for _, g := range p.Steps[0].Groups {
		if g.Role.Produces() {
			producers = append(producers, g)
		}
	}
	if len(producers) != 1 {
		return nil
	}
	return producers[0]
}

// search carries a search out, writes --json, and returns the exit status.
func (a *app) search(s *sweep.Search, jsonFile string) int {
	found, status := s.Do()
	if jsonFile == "" {
		return status
	}
	text, err := found.JSON()
	if err == nil {
		err = a.writeFile("--json", jsonFile, text, 0o600)
	}
	if err != nil {
		a.errors.print(err)
		return result.Graver(status, exitFailed)
	}
	return status
}

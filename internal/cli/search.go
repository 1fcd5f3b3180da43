package cli

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/sweep/record"
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

// searchMistakes refuses settings that have no meaning in a search, or that the search sets itself.
func searchMistakes(v *config.Values) (errs []error) {
	refuse := func(hint, format string, args ...any) {
		errs = append(errs, &plan.Mistake{Text: fmt.Sprintf(format, args...), Hint: hint})
	}
	if dir := v.Outputs.Result; dir != "" {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			refuse("name another folder, or remove this one",
				"--result %s: the folder is not empty, and a search keeps several results in it", dir)
		}
	}
	errs = append(errs, ofOneRun(v, "message-count", "metrics", "web", "format", "show-latency", "run-id")...)
	if _, constant := v.Group.Rate.Constant(); !v.Group.Rate.IsZero() && !constant {
		refuse("give --rate one number: --find-max begins with it", "--find-max does not go with a rate in segments")
	}
	return errs
}

// newSearch returns the search for the highest rate of a plan.
func (a *app) newSearch(ready config.Ready) *sweep.Search {
	v := ready.Values
	s := &sweep.Search{
		First: a.newRun(ready), Thresholds: v.Command.FindMax, From: v.Group.Rate.Peak(), Silent: v.Outputs.Silent,
		Progress: &progress{a, a.Stdout},
	}
	if v.Outputs.JSON == run.Standard {
		s.Progress = &progress{a, a.Stderr}
	}
	return s
}

// scenarioSearch returns the search of a scenario, with the plan of its first load.
func (a *app) scenarioSearch(of *source) (prepared, error) {
	ready, err := of.plan(config.Cell{})
	if err != nil {
		return prepared{}, err
	}
	errs := searchMistakes(ready.Values)
	if p := ready.Plan; len(p.Steps) != 1 || p.Steps[0].Duration <= 0 {
		errs = append(errs, &plan.Mistake{
			Text: of.Path + ": a search wants one step with a duration", Hint: "duration: 6s, and no other steps",
		})
	}
	if len(errs) > 0 {
		return prepared{}, errors.Join(errs...)
	}
	s := a.newSearch(ready)
	s.Thresholds = append(s.Thresholds, of.Search.Thresholds...)
	if from, err := load.ParseSchedule(of.Search.From); err == nil {
		s.From = from.Peak()
	}
	s.Build = func(rate string) (*run.Run, error) {
		one, err := of.plan(config.Cell{Rate: rate})
		if err != nil {
			return nil, err
		}
		return a.newRun(one), nil
	}
	return prepared{Ready: ready, search: s}, nil
}

// search carries a search out, writes --json, and returns the exit status.
func (a *app) search(s *sweep.Search, jsonFile string) int {
	found, status := s.Do()
	if jsonFile == "" {
		return status
	}
	if err := a.writeFound(found, jsonFile); err != nil {
		a.errors.print(err)
		return result.Graver(status, exitFailed)
	}
	return status
}

// writeFound writes the outcome of a search to --json.
func (a *app) writeFound(found *record.Search, file string) error {
	text, err := found.JSON()
	if err != nil {
		return err
	}
	if err = a.writeJSON(file, text); err != nil && file == run.Standard {
		return &plan.Mistake{Text: "write --json: " + bare(err).Error(), Hint: "look at where standard output goes"}
	}
	if err != nil {
		return fileNotWritten("--json", err)
	}
	return nil
}

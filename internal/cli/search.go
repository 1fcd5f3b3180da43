package cli

import (
	"errors"
	"os"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// Defaults of --find-max.
const (
	searchDuration   = 6 * time.Second
	searchWarmup     = time.Second
	searchMaxPending = 1000 // high enough that the broker is the limit
)

// searchDefaults sets the defaults of a search.
func searchDefaults(v *setting.Values) {
	if !v.Has("duration") {
		v.Duration = searchDuration
	}
	if !v.Has("warmup") {
		v.Warmup = min(searchWarmup, v.Duration/4)
	}
	if !v.Has("max-pending") {
		v.MaxPending = searchMaxPending
	}
}

// searchMistakes refuses settings that have no meaning in a search, or that the search sets itself.
func (r *resolver) searchMistakes() {
	if r.ResultDir != "" {
		if entries, err := os.ReadDir(r.ResultDir); err == nil && len(entries) > 0 {
			r.refuse("name another folder, or remove this one",
				"--result %s: the folder is not empty, and a search keeps several results in it", r.ResultDir)
		}
	}
	for _, name := range []string{
		"message-count", "hdr", "verify-file", "metrics", "web", "format", "show-latency",
		"shard", "run-id", "start-at",
	} {
		if r.Has(name) {
			r.refuse("leave one of them out", "--%s does not work with the several runs of a search", name)
		}
	}
	if _, constant := r.Rate.Constant(); !r.Rate.IsZero() && !constant {
		r.refuse("give --rate one number: --find-max begins with it", "--find-max does not go with a rate in segments")
	}
}

// newSearch returns the search for the highest rate of a plan.
func (a *app) newSearch(p *plan.Plan, v *setting.Values) *sweep.Search {
	s := &sweep.Search{
		First: a.newRun(p, v), Thresholds: v.FindMax, From: v.Rate.Peak(), Silent: v.Silent,
		Progress: &progress{a, a.Stdout},
	}
	if v.JSONFile == run.Standard {
		s.Progress = &progress{a, a.Stderr}
	}
	return s
}

// scenarioSearch returns the search of a scenario, with the plan of its first load.
func (a *app) scenarioSearch(of *source, file *scenario.File) (prepared, error) {
	if of.sweep != (sweepFlags{}) {
		return prepared{}, &plan.Mistake{
			Text: of.path + " is a search: --repeats, --seed and --changed are for sweeps", Hint: "leave them out",
		}
	}
	ready, err := a.planOf(file, of)
	if err != nil {
		return prepared{}, err
	}
	r := resolver{Values: ready.settings}
	r.searchMistakes()
	if len(ready.plan.Steps) != 1 || ready.plan.Steps[0].Duration <= 0 {
		r.refuse("duration: 6s, and no other steps", "%s: a search wants one step with a duration", of.path)
	}
	if len(r.errs) > 0 {
		return prepared{}, errors.Join(r.errs...)
	}
	s := a.newSearch(ready.plan, ready.settings)
	for i := range file.Search.Thresholds {
		t, err := threshold.Parse(file.Search.Thresholds[i].Text)
		if err != nil {
			return prepared{}, err // already checked
		}
		s.Thresholds = append(s.Thresholds, t)
	}
	if from, err := load.ParseSchedule(file.Search.From); err == nil {
		s.From = from.Peak()
	}
	s.Build = func(rate string) (*run.Run, error) {
		one, err := a.planOf(file.AtRate(rate), of)
		if err != nil {
			return nil, err
		}
		return a.newRun(one.plan, one.settings), nil
	}
	ready.search = s
	return ready, nil
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

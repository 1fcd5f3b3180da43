package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// Search is what a search came to.
type Search struct {
	Rate float64
	Held bool // otherwise there is no rate
	// AtLeast: perfmq was the limit, so the rate is a lower bound.
	AtLeast bool
}

// found is the metric of searches.
func found() Metric {
	return Metric{
		Name: record.FoundMetric, Unit: threshold.PerSecond, Higher: true,
		of: func(*result.Result) (float64, bool) { return 0, false },
	}
}

// readSearch reads the search in a folder, with the result of the load that it held the longest: its plan, but for the
// rate, its labels, versions and machine.
func readSearch(dir string, check func(*result.Result) error) (*result.Result, Search, error) {
	f, err := record.ReadSearch(dir)
	if err != nil {
		return nil, Search{}, err
	}
	r, err := heldResult(dir, f.Found, check)
	if err != nil {
		return nil, Search{}, err
	}
	r.Complete, r.Outcome = true, result.Outcome{Success: f.Held}
	if !f.Held {
		r.Outcome.Problems = []string{f.String()}
	}
	return r, Search{Rate: f.Rate, Held: f.Held, AtLeast: f.AtLeast()}, nil
}

// heldResult returns the result of the last load by which a rate was held. If none was, it is that of the last load at
// all, of which only plan and machine are of interest; an empty one if there is none.
func heldResult(dir string, f *record.Found, check func(*result.Result) error) (*result.Result, error) {
	for i := len(f.Points) - 1; i >= 0; i-- {
		p := &f.Points[i]
		if f.Held && (!p.Hold || !p.Kept) {
			continue
		}
		path := filepath.Join(dir, record.PointFolder(i+1, p.Rate))
		r, err := result.Read(path)
		switch {
		case errors.Is(err, result.ErrNoResult):
			continue
		case err != nil:
			return nil, err
		}
		if err := checked(r, check); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		r.Rows = nil
		r.Plan, err = withoutRate(r.Plan, p.Rate)
		return r, err
	}
	return &result.Result{}, nil
}

// withoutRate removes the rate from the groups of a plan. The search found it, so plans that differ in it are alike.
func withoutRate(text json.RawMessage, rate float64) (json.RawMessage, error) {
	var plan map[string]any
	if err := json.Unmarshal(text, &plan); err != nil {
		return text, nil //nolint:nilerr // a result without a plan
	}
	steps, _ := plan["steps"].([]any)
	for _, s := range steps {
		step, _ := s.(map[string]any)
		groups, _ := step["groups"].([]any)
		for _, g := range groups {
			group, _ := g.(map[string]any)
			given, _ := group["rate"].(string)
			if v, err := strconv.ParseFloat(given, 64); err == nil && v == rate {
				delete(group, "rate")
			}
		}
	}
	return json.Marshal(plan)
}

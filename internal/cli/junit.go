package cli

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/page"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// do carries a plan out and writes --junit. The file exists from the beginning: after a kill it has a run that has not
// come to its end.
func (a *app) do(p *prepared) int {
	file := p.Values.Outputs.JUnit
	begun := &page.JUnit{}
	begun.Add("", &result.Result{Head: result.Head{Scenario: p.Plan.Name}})
	if err := a.writeJUnit(file, begun); err != nil {
		_ = a.usage(err)
		return a.status
	}
	cases := &page.JUnit{}
	status := a.load(p, cases)
	if status != result.StatusOK {
		cases.Explain(append(slices.Sorted(maps.Keys(a.errors.seen)), fmt.Sprintf("exit status %d", status))...)
	}
	if err := a.writeJUnit(file, cases); err != nil {
		a.errors.print(err)
		return result.Graver(status, exitFailed)
	}
	return status
}

func (a *app) writeJUnit(file string, cases *page.JUnit) error {
	if file == "" {
		return nil
	}
	var b bytes.Buffer
	if err := safetext.Clean(a.secrets, cases).Write(&b); err != nil {
		return err
	}
	return a.writeFile("--junit", file, b.Bytes(), 0o600)
}

// load carries a run, a sweep or a search out. It returns the exit status, and adds the outcomes to the cases.
func (a *app) load(p *prepared, cases *page.JUnit) int {
	switch {
	case p.sweep != nil:
		outcomes, ended := map[string]*result.Result{}, p.sweep.Progress.Ended
		p.sweep.Progress.Ended = func(folder string, e *run.Ending) {
			ended(folder, e)
			outcomes[folder] = a.outcome(p.Plan.Name, e)
		}
		status := p.sweep.Do()
		cases.AddSweep(p.sweep.Record(), outcomes)
		return status
	case p.search != nil:
		begun := time.Now()
		found, status := a.search(p.search, p.Values.Outputs.JSON)
		cases.AddSearch(p.Plan.Name, found, time.Since(begun).Microseconds(),
			slices.Sorted(maps.Keys(a.errors.seen))...)
		return status
	}
	e := a.newRun(p.Ready).Do()
	cases.Add("", a.outcome(p.Plan.Name, &e))
	return a.printEnding(e)
}

// outcome returns the result of a run as far as its test cases need it.
func (a *app) outcome(scenario string, e *run.Ending) *result.Result {
	r := &result.Result{}
	if s := e.Summary; s != nil {
		*r = s.Result
		r.Latencies, r.Workers = result.Latencies{}, nil
	}
	r.Scenario = scenario
	r.Host.Name, _ = os.Hostname()
	errs := config.Parts(e.Err, e.Closing)
	if e.Summary == nil && e.Ended() {
		errs = append(errs, errors.New("interrupted before its end"))
	}
	r.Findings = slices.Clip(r.Findings)
	for _, err := range errs {
		r.Findings = append(r.Findings, words.As(result.Finding{Kind: "error", Text: err.Error()}, result.Problem))
	}
	return r
}

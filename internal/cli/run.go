package cli

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// runRole runs perfmq PROTOCOL ROLE.
func (a *app) runRole(args []string, in *input, f *driver.Factory, role plan.Role) error {
	v, errs := in.given.Values(in.table)
	errs = append(errs, a.environ.Unknown()...)
	searches := len(v.FindMax) > 0
	if searches {
		searchDefaults(v)
	}
	ready, planErrs := a.maker.FromFlags(v, role, f, args)
	errs = append(errs, planErrs...)
	p := prepared{Ready: ready}
	if searches {
		var searchErrs []error
		p.search, searchErrs = a.newSearch(ready, func() (config.Ready, error) {
			ready, errs := a.maker.FromFlags(new(*v), role, f, args)
			return ready, errors.Join(errs...)
		})
		errs = append(errs, searchErrs...)
	}
	if len(errs) > 0 {
		return a.usage(errs...)
	}
	return a.carryOut(&p)
}

// commandLine returns the command of the user, for a shell, without secrets.
func (a *app) commandLine() string {
	words := []string{"perfmq"}
	for _, arg := range a.Args {
		words = append(words, safetext.Shell(a.secrets.Field(arg)))
	}
	return strings.Join(words, " ")
}

// newRun returns a run of a valid plan with the requested outputs.
func (a *app) newRun(ready config.Ready) *run.Run {
	p := ready.Plan
	if a.FakeClock {
		p.FakeClock, p.RunID = true, cmp.Or(p.RunID, 1)
	}
	outputs := ready.Values.Outputs
	if !ready.Values.Has("format") {
		outputs.Format = "" // it depends on the terminal
	}
	return &run.Run{
		Plan: p, Drivers: a.maker.Driver, Side: ready.Values.Side, Outputs: outputs, Meeting: ready.Values.Meeting,
		Listen:      a.Listen,
		CommandLine: a.commandLine(), Secrets: a.secrets, Version: a.Version, Stdout: a.Stdout,
		Stderr: a.Stderr, Environ: a.Environ, Signals: a.Signals,
		KeepGC: slices.ContainsFunc(a.Environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }),
		Say:    a.errors.say, OnError: func(err error) { a.errors.print(err) },
	}
}

// printEnding prints how a run ended, and returns the exit status.
func (a *app) printEnding(e run.Ending) int {
	if e.Abandoned && !e.Opened {
		a.errors.say("interrupted: " + nothingDone)
	}
	a.errors.print(e.Err)
	if s := e.Summary; s != nil && (!e.Told || !a.errors.overwrite) {
		if !s.Outcome.Success {
			a.printProblems(s)
		}
		a.printBroken(s.Thresholds)
	}
	a.errors.print(e.Closing)
	return e.Status()
}

// printBroken prints the thresholds that a run has broken.
func (a *app) printBroken(outcomes []result.Threshold) {
	for _, t := range outcomes {
		if !t.Kept {
			a.errors.write("threshold: "+t.String(), "")
		}
	}
}

// printProblems prints the problems of a run, which make it a failure.
func (a *app) printProblems(s *stats.Summary) {
	var problems []error
	for _, f := range s.Findings {
		if f.Severity == result.Problem {
			problems = append(problems, &plan.Mistake{Text: f.Text, Hint: f.Hint})
		}
	}
	a.errors.print(problems...)
}

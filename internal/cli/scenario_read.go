package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/result"
)

// read returns the text of a scenario and its name for messages.
func (a *app) read(name string) (path string, text []byte, err error) {
	if scenario.IsShipped(name) {
		if a.Scenarios == nil {
			return "", nil, &plan.Mistake{Text: "this program has no scenarios inside", Hint: "name a file"}
		}
		_, text, err = scenario.Open(a.Scenarios, name)
		var unknown *scenario.UnknownError
		if errors.As(err, &unknown) {
			return "", nil, &plan.Mistake{Text: unknown.Error(), Hint: unknown.Hint}
		}
		return name, text, err
	}
	text, err = inputfile.Read(name, scenario.MaxSize)
	var fe *inputfile.Error
	if errors.As(err, &fe) {
		return "", nil, &plan.Mistake{Text: "scenario " + err.Error(), Hint: fe.Hint}
	}
	return name, text, err
}

// prepare reads one of several scenarios and makes its plan. The error holds all mistakes.
func (a *app) prepare(name string, several int, of *source) (prepared, error) {
	path, text, err := a.read(name)
	if err != nil {
		return prepared{}, err
	}
	of.path, of.text, of.several = path, text, several > 1
	file, err := scenario.Parse(path, text, setting.Keys(setting.Names(a.Factories)), of.set)
	if err != nil {
		return prepared{}, err
	}
	if file.Search != nil {
		return a.scenarioSearch(of, file)
	}
	if of.isSweep(file) {
		return a.newSweep(of, file)
	}
	switch {
	case of.sweep.seed != "":
		return prepared{}, &plan.Mistake{
			Text: "--seed is given, but " + path + " is no sweep",
			Hint: "matrix: in the file, or --repeats N",
		}
	case of.sweep.changed:
		return prepared{}, &plan.Mistake{Text: "--changed is given, but " + path + " is no sweep", Hint: "leave it out"}
	}
	return a.planOf(file, of)
}

// planOf makes the plan of a scenario, or of a cell of a sweep.
func (a *app) planOf(file *scenario.File, of *source) (prepared, error) {
	b := &builder{app: a, in: of.in, file: file}
	p, whole := b.build()
	whole.shard(p, a.environ[setting.JobIndex])
	if (of.several || file.Search != nil || of.isSweep(file)) && (!whole.StartAt.IsZero() || !whole.Shard.IsZero()) {
		whole.refuse("give one scenario that is no sweep and no search",
			"--start-at and --shard are for one run, and there are several")
	}
	if of.several && whole.ResultDir != "" {
		into(p, whole.Values, filepath.Join(whole.ResultDir, filepath.Base(p.Name)))
	}
	whole.outputs(a.Stdout, a.Stderr)
	errs := slices.Concat(b.errs, whole.errs)
	if err := p.Validate(a.driver); err != nil {
		for _, err := range parts([]error{err}) {
			if !b.placed(err) {
				errs = append(errs, b.place(err))
			}
		}
	}
	if len(b.mistakes) > 0 {
		errs = append([]error{b.mistakes}, errs...)
	}
	if len(errs) > 0 {
		return prepared{}, errors.Join(errs...)
	}
	notes := b.notes()
	if of.scale < 1 {
		p.Scale(of.scale)
		notes = append(notes, fmt.Sprintf("--scale %v: durations, counts and backlogs are shortened; the figures are those "+
			"of a try", of.scale))
	}
	return prepared{plan: p, settings: whole.Values, notes: notes}, nil
}

// into sets the folder of a run's result; no result is written if dir is empty.
func into(p *plan.Plan, s *setting.Values, dir string) {
	s.ResultDir = dir
	if !p.Verify || s.VerifyFile != "" {
		return
	}
	p.VerifyFile = ""
	if dir != "" {
		p.VerifyFile = filepath.Join(dir, result.VerifyFile)
	}
}

// placed records a mistake of a threshold of the file at its position there. It is false for other mistakes.
func (b *builder) placed(err error) bool {
	var m *plan.Mistake
	if !errors.As(err, &m) || m.Threshold == "" {
		return false
	}
	pos, ok := b.demands[demanded{m.Step, m.Threshold}]
	if ok {
		b.bad(pos, m.Hint, "%s", strings.ReplaceAll(m.Text, "--", ""))
	}
	return ok
}

// place adds the name of the file to a mistake of the plan.
func (b *builder) place(err error) error {
	var m *plan.Mistake
	if errors.As(err, &m) {
		text, hint := named(b.in.named, m.Text, m.Hint)
		return &plan.Mistake{Text: b.file.Path + ": " + strings.ReplaceAll(text, "--", ""), Hint: hint}
	}
	return fmt.Errorf("%s: %w", b.file.Path, err)
}

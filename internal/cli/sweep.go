package cli

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/sweep/record"
)

// source is a scenario with its flags, from which the plans of all cells are made.
type source struct {
	path    string
	several bool // scenarios run
	text    []byte
	set     map[string]string
	in      *input
	scale   float64
	sweep   sweepFlags
}

// sweepFlags are the flags of perfmq run for sweeps.
type sweepFlags struct {
	repeats, seed string
	changed       bool
}

// isSweep reports whether a file describes more than one run.
func (of *source) isSweep(file *scenario.File) bool {
	repeats, given := entry(file.Settings, setting.KeyRepeats)
	return file.Matrix != nil || given && repeats != "1" ||
		of.sweep.repeats != "" && of.sweep.repeats != "1"
}

// newSweep returns the sweep of a scenario, with the plan of its first cell.
func (a *app) newSweep(of *source, file *scenario.File) (prepared, error) {
	c := sweep.Config{Repeats: 1, Cells: record.Cells(nil, nil), Changed: of.sweep.changed}
	var axes []scenario.Axis
	var mistakes scenario.Mistakes
	if m := file.Matrix; m != nil {
		axes, mistakes = axesOf(of, file)
		for _, axis := range axes {
			c.Axes = append(c.Axes, record.Axis{Name: axis.Name, Values: axis.Values})
		}
		if c.Cells = record.Cells(c.Axes, m.Excluded); len(c.Cells) == 0 {
			mistakes = append(mistakes, file.Mistake(m.Pos, "no cell of the matrix is left: all are excluded", "exclude fewer"))
		}
	}
	errs := configure(&c, of, file)
	if len(mistakes) > 0 {
		errs = append(errs, mistakes)
	}
	if len(errs) > 0 {
		return prepared{}, errors.Join(errs...)
	}
	var first prepared
	c.Build = func(values map[string]string) (*run.Run, error) {
		ready, err := a.cell(of, axes, values)
		if err != nil {
			return nil, err
		}
		if first.plan == nil {
			first = ready
		}
		one := a.newRun(ready.plan, ready.settings)
		one.Outputs.Silent = one.Outputs.Silent || !ready.settings.Has("format")
		return one, nil
	}
	c.Progress = &progress{a, a.Stdout}
	s, err := sweep.New(c)
	if err != nil {
		return prepared{}, err
	}
	s.Silent, first.sweep = first.settings.Silent, s
	return first, ofOneRun(first.settings)
}

// axesOf returns the axes of a matrix. Variables that a flag sets do not vary.
func axesOf(of *source, file *scenario.File) (axes []scenario.Axis, mistakes scenario.Mistakes) {
	axes = slices.Clone(file.Matrix.Axes)
	for i := range axes {
		a := &axes[i]
		if v, pinned := of.set[a.Variable]; a.Variable != "" && pinned {
			a.Values = []string{v}
		}
		if slices.ContainsFunc(a.Values, func(v string) bool { return hasSecret(a.Name, v) }) {
			mistakes = append(mistakes, file.Mistake(a.Pos, "a value of the axis "+a.Name+" has a password, which outputs and "+
				"names of folders would have to show", "give the password by --password or PERFMQ_PASSWORD"))
		}
		if flag := a.Setting(); flag != "" && of.given(flag) {
			mistakes = append(mistakes, file.Mistake(a.Pos, "the matrix varies "+a.Name+", and --"+flag+" is given as well",
				"leave one of them out"))
		}
		if of.scale < 1 && len(a.Values) > 2 {
			a.Values = []string{a.Values[0], a.Values[len(a.Values)-1]}
		}
	}
	return axes, mistakes
}

// hasSecret tells whether the value of an axis has a password in it.
func hasSecret(axis, value string) bool {
	text := axis + "=" + value
	return safetext.URLs(text) != text
}

// given reports whether a flag or a variable has set a setting.
func (of *source) given(name string) bool {
	i := slices.IndexFunc(of.in.table, func(s setting.Setting) bool { return s.Name == name })
	return i >= 0 && of.in.given.Has(&of.in.table[i])
}

// configure reads the settings of a sweep.
func configure(c *sweep.Config, of *source, file *scenario.File) (errs []error) {
	text := func(key string) string { t, _ := entry(file.Settings, key); return t }
	if repeats := text(setting.KeyRepeats); repeats != "" {
		c.Repeats, _ = setting.Repeats(repeats) // already checked
	}
	var err error
	if repeats := of.sweep.repeats; repeats != "" {
		if c.Repeats, err = setting.Repeats(repeats); err != nil {
			errs = append(errs, &plan.Mistake{Text: "--repeats=" + setting.Quoted(repeats) + ": " + err.Error()})
		}
	}
	if of.scale < 1 {
		c.Repeats = 1
	}
	c.Settle, _ = quantity.Duration(text(setting.KeySettle), time.Second) // already checked; an empty text is 0
	c.Between, c.Stop = text(setting.KeyBetweenRuns), text(setting.KeyOnFailure) == setting.FailureStop
	c.Shuffled = text(setting.KeyOrder) == setting.OrderShuffle
	if c.Shuffled {
		c.Seed = rand.Uint64() % 1e6 //nolint:gosec // an order, not a secret
	}
	if seed := of.sweep.seed; seed != "" {
		c.SeedGiven = true
		c.Seed, err = strconv.ParseUint(seed, 10, 64)
		switch {
		case err != nil:
			errs = append(errs, &plan.Mistake{Text: "--seed=" + setting.Quoted(seed) + ": must be a whole number"})
		case !c.Shuffled:
			errs = append(errs, &plan.Mistake{
				Text: "--seed is given, but the scenario is not shuffled", Hint: "order: shuffled in the file",
			})
		}
	}
	return errs
}

// cell makes the plan of a cell.
func (a *app) cell(of *source, axes []scenario.Axis, values map[string]string) (prepared, error) {
	set := maps.Clone(of.set)
	for _, axis := range axes {
		if axis.Variable != "" {
			set[axis.Variable] = values[axis.Name]
		}
	}
	file, err := scenario.Parse(of.path, of.text, setting.Keys(setting.Names(a.Factories)), set)
	if err != nil {
		return prepared{}, err
	}
	return a.planOf(file.With(axes, values), of)
}

// ofOneRun refuses outputs that several runs cannot share.
func ofOneRun(s *setting.Values) error {
	var errs []error
	for _, output := range []struct {
		flag  string
		given bool
	}{
		{"json", s.JSONFile != ""},
		{"hdr", s.HDRFile != ""},
		{"verify-file", s.VerifyFile != ""},
		{"metrics-linger", s.MetricsLinger > 0},
	} {
		if output.given {
			errs = append(errs, &plan.Mistake{
				Text: "--" + output.flag + " has no place in the several runs of a sweep",
				Hint: "use --result, which makes a folder for each run",
			})
		}
	}
	return errors.Join(errs...)
}

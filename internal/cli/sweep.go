package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/gofrs/flock"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
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

// sweeper runs a sweep.
type sweeper struct {
	a     *app
	of    *source
	file  *scenario.File
	axes  []scenario.Axis
	cells []map[string]string

	settle  time.Duration
	between string
	stop    bool // stop after a failure

	first   prepared // of the first cell
	lengths map[int]sweep.Length
	state   *sweep.Sweep
	dir     string
	held    *flock.Flock // of dir
	emptied []string     // descriptions of emptying the queues, for all cells

	interrupted bool // a signal ended the sweep, even if a failed run sets the exit status
}

// isSweep reports whether a file describes more than one run.
func (of *source) isSweep(file *scenario.File) bool {
	repeats, given := entry(file.Settings, setting.KeyRepeats)
	return file.Matrix != nil || given && repeats != "1" ||
		of.sweep.repeats != "" && of.sweep.repeats != "1"
}

// newSweeper checks a sweep and the plans of all its cells. The error has all mistakes of the first faulty cell.
func (a *app) newSweeper(of *source, file *scenario.File) (*sweeper, error) {
	w := &sweeper{
		a: a, of: of, file: file, lengths: map[int]sweep.Length{},
	}
	w.state = &sweep.Sweep{Format: sweep.Format, Version: sweep.Version, ID: newID(), Repeats: 1}
	if err := w.configure(); err != nil {
		return nil, err
	}
	hash := sha256.New()
	for i, values := range w.cells {
		ready, err := w.build(values)
		if err != nil {
			if len(values) > 0 {
				err = errors.Join(err, &plan.Mistake{Text: "that is in the cell " + w.state.Title(values)})
			}
			return nil, err
		}
		if i == 0 {
			w.first = ready
			w.state.Name = ready.plan.Name
			w.dir = ready.settings.ResultDir
		}
		if err := w.check(ready); err != nil {
			return nil, err
		}
		w.lengths[i+1] = w.lengthOf(ready.plan)
		for _, how := range run.HowEmptied(ready.plan, w.a.driver, ready.settings.Embedded) {
			if !slices.Contains(w.emptied, how) {
				w.emptied = append(w.emptied, how)
			}
		}
		if err := w.hashCell(hash, values, ready); err != nil {
			return nil, err
		}
	}
	_, _ = fmt.Fprintf(hash, "%d %s %v %v\n", w.state.Repeats, w.between, w.state.Shuffled, w.of.scale) // never fails
	w.state.Plan = hex.EncodeToString(hash.Sum(nil))
	if steps := w.first.plan.Steps; len(steps) > 1 {
		for i := range steps {
			w.state.Steps = append(w.state.Steps, steps[i].Name)
		}
	}
	w.state.Arrange(w.cells)
	return w, nil
}

// hashCell adds a cell to a hash: its plan, and the labels, the embedded broker and the early ends of a run, which the
// plan does not have.
func (w *sweeper) hashCell(to io.Writer, values map[string]string, ready prepared) error {
	data, err := plan.JSON(ready.plan, w.a.secrets.Field)
	if err != nil {
		return err
	}
	of, err := result.Hash(data)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(to, "%s %q %q %v %+v\n", of, values, ready.plan.Labels, ready.settings.Embedded,
		ready.settings.Faults)
	aborts := func(list []threshold.Threshold) {
		for i := range list {
			_, _ = fmt.Fprintf(to, "%v ", list[i].Abort)
		}
	}
	aborts(ready.plan.Thresholds)
	for i := range ready.plan.Steps {
		aborts(ready.plan.Steps[i].Thresholds)
	}
	return nil
}

// hasSecret tells whether the value of an axis has a password in it.
func hasSecret(axis, value string) bool {
	text := axis + "=" + value
	return safetext.URLs(text) != text
}

// newID returns a short random identifier of a sweep.
func newID() string {
	return strconv.FormatUint(rand.Uint64()%(36*36*36*36*36), 36) //nolint:gosec // a name, not a secret
}

// configure reads the settings of the sweep.
func (w *sweeper) configure() error {
	text := func(key string) string { t, _ := entry(w.file.Settings, key); return t }
	var errs []error
	if m := w.file.Matrix; m != nil {
		w.axes = slices.Clone(m.Axes)
		for i := range w.axes {
			a := &w.axes[i]
			if v, pinned := w.of.set[a.Variable]; a.Variable != "" && pinned {
				a.Values = []string{v}
			}
			if slices.ContainsFunc(a.Values, func(v string) bool { return hasSecret(a.Name, v) }) {
				errs = append(errs, w.wrong(a.Pos, "a value of the axis "+a.Name+" has a password, which outputs and "+
					"names of folders would have to show", "give the password by --password or PERFMQ_PASSWORD"))
			}
			if flag := a.Setting(); flag != "" && w.given(flag) {
				errs = append(errs, w.wrong(a.Pos, "the matrix varies "+a.Name+", and --"+flag+" is given as well",
					"leave one of them out"))
			}
			if w.of.scale < 1 && len(a.Values) > 2 {
				a.Values = []string{a.Values[0], a.Values[len(a.Values)-1]}
			}
			w.state.Axes = append(w.state.Axes, sweep.Axis{Name: a.Name, Values: a.Values})
		}
		w.cells = sweep.Cells(w.state.Axes, m.Excluded)
		if len(w.cells) == 0 {
			errs = append(errs, w.wrong(m.Pos, "no cell of the matrix is left: all are excluded", "exclude fewer"))
		}
	} else {
		w.cells = sweep.Cells(nil, nil)
	}
	if of := text(setting.KeyRepeats); of != "" {
		w.state.Repeats, _ = setting.Repeats(of) // already checked
	}
	if of := w.of.sweep.repeats; of != "" {
		n, err := setting.Repeats(of)
		if err != nil {
			errs = append(errs, &plan.Mistake{Text: "--repeats=" + setting.Quoted(of) + ": " + err.Error()})
		}
		w.state.Repeats = n
	}
	if w.of.scale < 1 {
		w.state.Repeats = 1
	}
	w.settle, _ = quantity.Duration(text(setting.KeySettle), time.Second) // already checked; an empty text is 0
	w.between, w.stop = text(setting.KeyBetweenRuns), text(setting.KeyOnFailure) == setting.FailureStop
	w.state.Shuffled = text(setting.KeyOrder) == setting.OrderShuffle
	if w.state.Shuffled {
		w.state.Seed = rand.Uint64() % 1e6 //nolint:gosec // an order, not a secret
	}
	if of := w.of.sweep.seed; of != "" {
		seed, err := strconv.ParseUint(of, 10, 64)
		switch {
		case err != nil:
			errs = append(errs, &plan.Mistake{Text: "--seed=" + setting.Quoted(of) + ": must be a whole number"})
		case !w.state.Shuffled:
			errs = append(errs, &plan.Mistake{
				Text: "--seed is given, but the scenario is not shuffled",
				Hint: "order: shuffled in the file",
			})
		}
		w.state.Seed = seed
	}
	return errors.Join(errs...)
}

// wrong returns a mistake at a place of the file.
func (w *sweeper) wrong(pos scenario.Pos, text, hint string) error {
	return scenario.Mistakes{w.file.Mistake(pos, text, hint)}
}

// given reports whether a flag or a variable has set a setting.
func (w *sweeper) given(name string) bool {
	i := slices.IndexFunc(w.of.in.table, func(s setting.Setting) bool { return s.Name == name })
	if i < 0 {
		return false
	}
	_, texts := w.of.in.given.Environment.Lookup(&w.of.in.table[i])
	return len(w.of.in.given.Flags[name])+len(texts) > 0
}

// build makes the plan of a cell.
func (w *sweeper) build(values map[string]string) (prepared, error) {
	set := maps.Clone(w.of.set)
	for _, a := range w.axes {
		if a.Variable != "" {
			set[a.Variable] = values[a.Name]
		}
	}
	file, err := scenario.Parse(w.of.path, w.of.text, setting.Keys(setting.Names(w.a.Factories)), set)
	if err != nil {
		return prepared{}, err
	}
	ready, err := w.a.planOf(file.With(w.axes, values), w.of)
	if err == nil && w.state.Repeats > 1 {
		deferMedians(ready.plan)
	}
	return ready, err
}

// deferMedians marks the thresholds on medians, which only the sweep can judge.
func deferMedians(p *plan.Plan) {
	later := func(list []threshold.Threshold) {
		for i := range list {
			list[i].Deferred = list[i].Median
		}
	}
	later(p.Thresholds)
	for i := range p.Steps {
		later(p.Steps[i].Thresholds)
	}
}

// check refuses settings that a sweep cannot have.
func (w *sweeper) check(ready prepared) error {
	var errs []error
	s := ready.settings
	for flag, given := range map[string]bool{
		"json": s.JSONFile != "", "hdr": s.HDRFile != "", "verify-file": s.VerifyFile != "",
		"metrics-linger": s.MetricsLinger > 0,
	} {
		if given {
			errs = append(errs, &plan.Mistake{
				Text: "--" + flag + " has no place in the several runs of a sweep",
				Hint: "use --result, which makes a folder for each run",
			})
		}
	}
	return errors.Join(errs...)
}

// lengthOf returns the known length of a run of a plan.
func (w *sweeper) lengthOf(p *plan.Plan) (l sweep.Length) {
	for i := range p.Steps {
		s := &p.Steps[i]
		length := s.Duration
		counted := length == 0
		for _, g := range s.Groups {
			end, ends := g.Rate.End()
			_, constant := g.Rate.Constant()
			switch {
			case ends:
				length = max(length, end)
			case constant && g.Count > 0:
				length = max(length, g.Rate.At(g.Count-1))
			default:
				continue
			}
			counted = false
		}
		if s.Duration > 0 {
			length = min(length, s.Duration)
		}
		l.Known += length
		l.Open = l.Open || counted || s.Idle > 0 || len(s.Before)+len(s.After) > 0
	}
	return l
}

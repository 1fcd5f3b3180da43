package cli

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/sweep/record"
)

// source is a scenario with its flags, from which the plans of all cells are made.
type source struct {
	*config.Scenario
	set     map[string]string
	in      *input
	scale   float64
	repeats string // --repeats; empty if it is not given
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
		Say:   a.errors.say,
		Print: func(line string) { _, _ = fmt.Fprintln(to, a.secrets.Line(line)) },
		Fail:  func(err error) { a.errors.print(err) },
		Ended: func(e *run.Ending) { a.printEnding(*e) },
	}
}

// newSweep returns the sweep of a scenario, with the plan of its first cell.
func (a *app) newSweep(of *source) (prepared, error) {
	s, errs := of.configure()
	s.Progress = a.progress(a.Stdout)
	if m := of.Matrix; m != nil {
		for i := range m.Axes {
			values, err := of.valuesOf(&m.Axes[i])
			errs = append(errs, config.Parts(err)...)
			s.Axes = append(s.Axes, record.Axis{Name: m.Axes[i].Name, Values: values})
		}
		if s.Cells = record.Cells(s.Axes, m.Excluded); len(s.Cells) == 0 {
			errs = append(errs, of.Wrong(m.Pos, "no cell of the matrix is left", ""))
		}
	}
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
		return nil, of.Wrong(a.Pos, "a value of the axis "+a.Name+" has a password, which outputs and names of "+
			"folders would have to show", "give the password by --password or PERFMQ_PASSWORD")
	}
	if of.scale < 1 && len(values) > 2 {
		values = []string{values[0], values[len(values)-1]}
	}
	return values, nil
}

// configure sets the settings of a sweep.
func (of *source) configure() (c *sweep.Sweep, errs []error) {
	one := of.Sweep
	c, one.Cells = &one, record.Cells(nil, nil)
	if text := of.repeats; text != "" {
		n, err := quantity.Whole(text, 1, config.MaxRepeats)
		if err != nil {
			errs = append(errs, &plan.Mistake{Text: "--repeats=" + config.Quoted(text) + ": " + err.Error()})
		}
		c.Repeats = int(n)
	}
	if of.scale < 1 {
		c.Repeats = 1
	}
	if c.Shuffled {
		c.Seed = rand.Uint64() % 1e6 //nolint:gosec // an order, not a secret
	}
	return c, errs
}

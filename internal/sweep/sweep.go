// Package sweep carries out sweeps and searches: many runs of one scenario, each with other values.
//
//	axes -> cells (combinations) x repeats -> runs, each with a folder -> table
//	rate -> load -> passes? -> another rate -> ... -> the highest rate is held
//
// It knows neither flags nor files of scenarios: a function makes the run of a cell, or of a rate. Its files and
// conclusions are in package record, which the pages of results read as well.
package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// Progress shows a person how a sweep or a search proceeds. Its texts may hold texts of brokers.
type Progress struct {
	Say   func(line string)                  // about the work
	Print func(line string)                  // of the outcome
	Fail  func(error)                        // or a threshold that fails
	Ended func(folder string, e *run.Ending) // why the load of a run failed, if it did
}

// What becomes of the destinations between two runs, as scenarios say it.
const (
	Keep  = "keep"  // they stay as the run before has left them
	Fresh = "fresh" // each run has destinations of its own, by their names
)

// Sweep is a sweep to be carried out.
type Sweep struct {
	Axes  []record.Axis
	Cells []map[string]string // values of the axes, by their names
	// Build makes a run of a cell, with a plan of its own.
	Build func(values map[string]string) (*run.Run, error)

	Repeats int `set:"repeats,key,sweep" range:"1..1000" default:"1" help:"runs of each cell of the matrix"`
	// Shuffled gives each round of repeats another order of the cells, by Seed.
	Shuffled bool `set:"order,key,sweep" words:"in-turn,shuffled" default:"in-turn" help:"in-turn: all cells once, then again; shuffled: each time in another order"`
	Seed     uint64
	Settle   time.Duration `set:"settle,key,sweep" default:"0s" help:"pause between two runs of a sweep"`
	Between  string        `set:"between-runs,key,sweep" words:"keep,fresh" default:"keep" help:"destinations of runs"`
	Stop     bool          `set:"on-failure,key,sweep" words:"continue,stop" default:"continue" help:"whether a sweep continues after a failed run"`
	Silent   bool
	Progress Progress

	state *record.Sweep
	begun bool // a run was
	dir   string
}

// Check checks the plans of all cells. The error has all mistakes of the first faulty one.
func (s *Sweep) Check() error {
	s.state = &record.Sweep{
		Format: record.Format, Version: record.Version, Axes: s.Axes, Repeats: s.Repeats, Shuffled: s.Shuffled,
		Seed: s.Seed,
		ID:   strconv.FormatUint(rand.Uint64()%(36*36*36*36*36), 36), //nolint:gosec // a name, not a secret
	}
	var steps []plan.Step
	hash := sha256.New()
	for i, values := range s.Cells {
		of, err := s.Build(values)
		if err != nil {
			if len(values) > 0 {
				err = errors.Join(err, &plan.Mistake{Text: "that is in the cell " + s.state.Title(values)})
			}
			return err
		}
		if i == 0 {
			steps, s.dir, s.state.Name = of.Plan.Steps, of.Outputs.Result, of.Plan.Name
		}
		if err := hashCell(hash, values, of); err != nil {
			return err
		}
	}
	// The scale, 1 here, is in the plans.
	_, _ = fmt.Fprintf(hash, "%d %s %v %v\n", s.Repeats, s.Between, s.Shuffled, 1) // never fails
	s.state.Plan = hex.EncodeToString(hash.Sum(nil))
	if len(steps) > 1 {
		for _, step := range steps {
			s.state.Steps = append(s.state.Steps, step.Name)
		}
	}
	s.state.Arrange(s.Cells)
	return nil
}

// thresholds returns the thresholds of the plan, then of each step.
func thresholds(p *plan.Plan) []threshold.Threshold {
	list := slices.Clone(p.Thresholds)
	for _, s := range p.Steps {
		list = append(list, s.Thresholds...)
	}
	return list
}

// hashCell adds a cell to a hash: its plan, and the labels, the embedded broker and the early ends of a run, which the
// plan's JSON does not have.
func hashCell(to io.Writer, values map[string]string, of *run.Run) error {
	data, err := plan.JSON(of.Plan, of.Secrets.Field)
	if err != nil {
		return err
	}
	hash, err := result.Hash(data)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(to, "%s %q %q %v %+v\n", hash, values, of.Plan.Labels, of.Plan.Embedded,
		of.Plan.Faults) // never fails
	for _, t := range thresholds(of.Plan) {
		_, _ = fmt.Fprintf(to, "%v ", t.Abort)
	}
	return nil
}

// Do carries the sweep out and returns the exit status.
func (s *Sweep) Do() (status int) {
	if err := s.open(); err != nil {
		s.Progress.Fail(err)
		return result.StatusUsage
	}
	if !s.Silent && s.finished() < len(s.state.Runs) {
		for _, line := range s.Describe() {
			s.note("%s", line)
		}
	}
	early := false
	for i := range s.state.Runs {
		r := &s.state.Runs[i]
		if r.State == record.Done {
			continue
		}
		next, err := s.one(r)
		if err != nil {
			s.Progress.Fail(err)
		}
		if err := s.save(); err != nil {
			s.Progress.Fail(err)
			return result.Graver(status, result.StatusFailed)
		}
		if r.State != record.Done { // conclude counts the others
			status = result.Graver(status, next)
		}
		early = next == result.StatusInterrupted || next == result.StatusConnect || next == result.StatusUsage ||
			next == result.StatusFailed && s.Stop
		if early {
			status = result.Graver(status, next)
			break
		}
	}
	if s.finished() < len(s.state.Runs) {
		text := fmt.Sprintf("%d of %d runs are finished", s.finished(), len(s.state.Runs))
		if early {
			text = "the sweep ends early: " + text
		}
		if s.dir != "" {
			text += "; the same command goes on with it"
		}
		s.note("%s", text)
	}
	return s.conclude(status)
}

// Record returns the state of each run.
func (s *Sweep) Record() *record.Sweep { return s.state }

func (s *Sweep) finished() (n int) {
	for _, r := range s.state.Runs {
		if r.State == record.Done {
			n++
		}
	}
	return n
}

// one carries a run out. It returns the exit status, and an error if no load was made.
func (s *Sweep) one(r *record.Run) (int, error) {
	of, err := s.Build(r.Values)
	if err != nil {
		return result.StatusUsage, err
	}
	if s.begun && s.Settle > 0 {
		if _, ended := run.UntilSignal(of.Signals, func() bool { <-time.After(s.Settle); return true }); !ended {
			return result.StatusInterrupted, nil
		}
	}
	s.begun = true
	r.Attempts++
	begun := time.Now()
	r.State, r.Start, r.Problem = record.Running, begun.UnixMicro(), ""
	if err := s.save(); err != nil {
		return result.StatusFailed, err
	}
	s.sayRun(r)
	dir, err := s.folder(r)
	if err != nil {
		return result.StatusFailed, err
	}
	of.Outputs.SetFolder(dir, of.Plan)
	s.separate(r, of)
	e := of.Do()
	s.Progress.Ended(r.Folder, &e)
	r.State = record.Unfinished
	status := e.Status()
	if e.Finished() {
		r.State, r.Status, r.Aborted = record.Done, status, e.Summary.Outcome.Aborted
		s.keep(r, e.Summary, of.Secrets.Line)
	}
	r.Ended(begun, time.Now())
	s.printRun(r)
	if e.Ended() { // no run follows
		status = result.StatusInterrupted
	}
	return status, nil
}

// separate keeps the messages of a run apart from messages of earlier runs, and tells commands the run.
func (s *Sweep) separate(r *record.Run, of *run.Run) {
	of.Plan.Environ = append(slices.Clip(of.Plan.Environ), fmt.Sprintf("PERFMQ_CELL=%d", r.Cell),
		fmt.Sprintf("PERFMQ_REPEAT=%d", r.Repeat))
	if s.Between == Fresh {
		name := fmt.Sprintf("-%s-%d-%d-%d", s.state.ID, r.Cell, r.Repeat, r.Attempts)
		of.Plan.Rename(func(destination string) string { return destination + name })
	}
}

// keep records the figures of a run.
func (s *Sweep) keep(r *record.Run, sum *stats.Summary, clean func(string) string) {
	r.Figures = map[string]float64{}
	var limits []record.Limit
	add := func(step string, metrics map[string]float64, limit *result.Limit) {
		for name, v := range metrics {
			if !strings.HasPrefix(name, threshold.GroupPrefix) {
				r.Figures[record.Name(step, name)] = v
			}
		}
		limits = append(limits, record.Limit{Step: step, Kind: limit.Kind, Text: clean(words.Limit(limit))})
	}
	if len(s.state.Steps) == 0 {
		add("", sum.Values, sum.Limit)
	} else {
		for i := range sum.Ended { // an aborted run may lack later steps
			add(sum.Ended[i].Name, sum.Ended[i].Values, sum.Ended[i].Limit)
		}
	}
	r.SetLimits(limits)
	if problems := sum.Problems(); len(problems) > 0 {
		r.Problem = clean(problems[0])
	}
}

// open continues the sweep in its folder, or makes the folder.
func (s *Sweep) open() error {
	if s.dir == "" {
		return nil
	}
	if err := s.own(); err != nil {
		return err
	}
	if err := makeFolder(s.dir); err != nil {
		return err
	}
	earlier, err := record.ReadSweep(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.save()
	case err != nil:
		return err
	case earlier.Plan != s.state.Plan:
		return plan.Wrong("name another folder",
			"--result %s has a sweep of another plan: the scenario, its variables or the flags have changed", s.dir)
	}
	s.state.Resume(earlier)
	s.note("continuing the sweep in %s: %d of %d runs are finished", s.dir, s.finished(), len(s.state.Runs))
	return s.save()
}

// makeFolder makes the folder of --result.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results are for all to read
		return fmt.Errorf("--result: %w", err)
	}
	return nil
}

// own refuses a folder that is not of a sweep and has other files.
func (s *Sweep) own() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--result: %w", err)
	}
	foreign := func(e fs.DirEntry) bool { // a sweep that is killed in its first save leaves a temporary file
		return !strings.HasPrefix(e.Name(), "."+record.SweepFile+".")
	}
	if slices.ContainsFunc(entries, foreign) && !record.IsSweep(s.dir) {
		return plan.Wrong("name another folder", "--result %s: the folder is not empty, and has no %s", s.dir,
			record.SweepFile)
	}
	return nil
}

// folder returns the folder for the result of a run; empty for none. It removes the result of an unfinished attempt,
// within the folder of the sweep.
func (s *Sweep) folder(r *record.Run) (dir string, err error) {
	if s.dir == "" {
		return "", nil
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return "", fmt.Errorf("--result: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written by it
	name := filepath.FromSlash(r.Folder)
	if _, err = root.Lstat(name); err == nil && r.Attempts == 1 {
		r.Attempts = 0 // it is not of this run
		return "", &plan.Mistake{Text: "--result " + s.dir + " has " + name + " already", Hint: "name another folder"}
	}
	if err = root.RemoveAll(name); err != nil {
		return "", fmt.Errorf("--result: %w", err)
	}
	return filepath.Join(s.dir, name), root.MkdirAll(filepath.Dir(name), 0o755)
}

func (s *Sweep) save() error {
	if s.dir == "" {
		return nil
	}
	return s.state.Write(s.dir)
}

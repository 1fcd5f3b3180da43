package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// setAside is the folder, within that of a sweep, for the results of unfinished runs.
const setAside = "unfinished"

// lockFile is held by the process that carries the sweep of a folder out. It stays there.
const lockFile = "sweep.lock"

// open reads the state of the sweep from its folder, or makes the folder. The folder is locked until the process ends
// or unlock is called.
func (w *sweeper) open() error {
	if w.dir == "" {
		return nil
	}
	if err := w.own(); err != nil {
		return err
	}
	if err := os.MkdirAll(w.dir, 0o755); err != nil { //nolint:gosec // results are for all
		return fmt.Errorf("make the folder of --result: %w", bare(err))
	}
	if err := w.lock(); err != nil {
		return err
	}
	earlier, err := sweep.Read(w.dir)
	switch {
	case err == nil:
		return w.resume(earlier)
	case !errors.Is(err, fs.ErrNotExist):
		return bare(err)
	}
	return w.save()
}

// own tells whether the folder is that of a sweep, or may become it.
func (w *sweeper) own() error {
	entries, err := os.ReadDir(w.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--result: %w", bare(err))
	}
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	if len(entries) > 0 && !has(sweep.File) && !has(lockFile) {
		return &plan.Mistake{
			Text: "--result " + w.dir + ": the folder is not empty, and has no " + sweep.File,
			Hint: "name another folder",
		}
	}
	return nil
}

// lock refuses a folder whose sweep another process is carrying out: it would take the results of running loads away,
// and the loads would disturb each other.
func (w *sweeper) lock() error {
	w.held = flock.New(filepath.Join(w.dir, lockFile), flock.SetPermissions(0o644))
	alone, err := w.held.TryLock()
	switch {
	case err != nil:
		return fmt.Errorf("lock the folder of --result: %w", bare(err))
	case !alone:
		return &plan.Mistake{
			Text: "--result " + w.dir + ": another perfmq is carrying this sweep out",
			Hint: "wait until it has ended, or name another folder",
		}
	}
	return nil
}

func (w *sweeper) unlock() {
	if w.held != nil {
		_ = w.held.Close()
	}
}

// resume continues a sweep.
func (w *sweeper) resume(earlier *sweep.Sweep) error {
	if earlier.Plan != w.state.Plan && !w.of.sweep.changed {
		return &plan.Mistake{
			Text: "--result " + w.dir + " has a sweep of another plan: the scenario, its variables or the flags have changed",
			Hint: "name another folder; or --changed, to keep the runs of cells with the same values",
		}
	}
	if seed := w.of.sweep.seed; seed != "" && earlier.Plan == w.state.Plan && w.state.Seed != earlier.Seed {
		return &plan.Mistake{Text: fmt.Sprintf("--seed %s: the sweep in %s was begun with --seed %d", seed, w.dir,
			earlier.Seed), Hint: "leave --seed out"}
	}
	finished, unfinished := w.state.Resume(earlier)
	text := fmt.Sprintf("going on with the sweep in %s: %d of %d runs are finished", w.dir, finished, len(w.state.Runs))
	for i := range unfinished {
		r := &unfinished[i]
		moved, err := w.moveAway(r)
		if err != nil {
			return err
		}
		if moved != "" {
			text += fmt.Sprintf("; the unfinished result of %s is now %s", r.Folder, moved)
		}
	}
	w.a.errors.say("note: " + text)
	return w.save()
}

// moveAway moves the result of an unfinished run into setAside. It returns the new path; empty if there is no result.
func (w *sweeper) moveAway(r *sweep.Run) (to string, err error) {
	from := filepath.Join(w.dir, filepath.FromSlash(r.Folder))
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err := os.MkdirAll(filepath.Join(w.dir, setAside), 0o755); err != nil { //nolint:gosec // results are for all
		return "", err
	}
	for n := max(1, r.Attempts); ; n++ {
		to = filepath.Join(setAside, fmt.Sprintf("%s-%d", strings.ReplaceAll(r.Folder, "/", "_"), n))
		if _, err := os.Lstat(filepath.Join(w.dir, to)); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
	}
	if err := os.Rename(from, filepath.Join(w.dir, to)); err != nil {
		return "", fmt.Errorf("set an unfinished result aside: %w", err)
	}
	return to, nil
}

// folder returns the folder for the result of a run (empty for none). It moves an earlier result of that run away and
// returns its new path.
func (w *sweeper) folder(r *sweep.Run) (dir, earlier string, err error) {
	if w.dir == "" {
		return "", "", nil
	}
	if earlier, err = w.moveAway(r); err != nil {
		return "", "", err
	}
	dir = filepath.Join(w.dir, filepath.FromSlash(r.Folder))
	return dir, earlier, os.MkdirAll(filepath.Dir(dir), 0o755) //nolint:gosec // results are for all to read
}

func (w *sweeper) save() error {
	if w.dir == "" {
		return nil
	}
	return w.state.Write(w.dir)
}

// do runs the sweep and returns the exit status.
func (w *sweeper) do() int {
	defer w.unlock()
	if err := w.open(); err != nil {
		w.a.errors.print(err)
		return exitUsage
	}
	if !w.first.settings.Silent {
		w.a.sayNotes(w.first.notes)
		if w.finished() < len(w.state.Runs) {
			for _, line := range w.describe() {
				w.a.errors.say("note: " + line)
			}
		}
	}
	status, begun, early := exitOK, false, false
	for i := range w.state.Runs {
		r := &w.state.Runs[i]
		if r.State == sweep.Done {
			continue
		}
		if begun && w.pause() {
			status, w.interrupted, early = result.Graver(status, exitInterrupted), true, true
			break
		}
		begun = true
		next := w.one(r)
		w.interrupted = next == exitInterrupted
		if err := w.save(); err != nil {
			w.a.errors.print(err)
			return result.Graver(status, exitFailed)
		}
		if r.State != sweep.Done { // conclude counts the others
			status = result.Graver(status, next)
		}
		if next == exitInterrupted || next == exitConnect || next == exitUsage || next == exitFailed && w.stop {
			status, early = result.Graver(status, next), true
			w.a.errors.say(fmt.Sprintf("note: the sweep ends early: %d of %d runs are finished%s", w.finished(),
				len(w.state.Runs), w.again()))
			break
		}
	}
	if left := len(w.state.Runs) - w.finished(); left > 0 && !early {
		w.a.errors.say(fmt.Sprintf("note: %d of %d runs did not come to their end and have no figures%s", left,
			len(w.state.Runs), w.again()))
	}
	return w.conclude(status)
}

// again returns a hint how to resume the sweep; empty without a folder.
func (w *sweeper) again() string {
	if w.dir == "" {
		return ""
	}
	return "; the same command goes on with it"
}

func (w *sweeper) finished() (n int) {
	for i := range w.state.Runs {
		if w.state.Runs[i].State == sweep.Done {
			n++
		}
	}
	return n
}

// pause waits between two runs. It reports whether a signal arrived.
func (w *sweeper) pause() bool {
	if w.settle <= 0 {
		return false
	}
	_, ended := run.UntilSignal(w.a.Signals, func() bool { <-time.After(w.settle); return true })
	return !ended
}

// one carries a run out, and returns the exit status.
func (w *sweeper) one(r *sweep.Run) int {
	ready, err := w.build(r.Values)
	if err != nil {
		w.a.errors.print(err)
		return exitUsage
	}
	r.Attempts++
	begun := time.Now()
	r.State, r.Start, r.Problem = sweep.Running, begun.UnixMicro(), ""
	if err := w.save(); err != nil {
		w.a.errors.print(err)
		return exitFailed
	}
	w.sayProgress(r)
	dir, _, err := w.folder(r)
	if err != nil {
		w.a.errors.print(err)
		return exitFailed
	}
	into(ready.plan, ready.settings, dir)
	if err := w.separate(r, ready); err != nil {
		r.State = sweep.Unfinished
		return w.notSeparated(err)
	}
	status := w.load(r, ready)
	r.Ended(begun, time.Now())
	if !w.first.settings.Silent {
		w.printRun(r)
	}
	return status
}

// load executes a run with one load.
func (w *sweeper) load(r *sweep.Run, ready prepared) int {
	ready.settings.Silent = ready.settings.Silent || !ready.settings.Has("format")
	of := w.a.newRun(ready.plan, ready.settings)
	e := of.Do()
	status := w.a.endedOneOf(e)
	r.State = sweep.Unfinished
	if s := e.Summary; e.Finished() {
		r.State, r.Status, r.Aborted = sweep.Done, status, s.Aborted
		w.note(r, s)
	}
	return status
}

// note records the figures of a run.
func (w *sweeper) note(r *sweep.Run, s *stats.Summary) {
	clean := w.a.secrets.Line
	r.Figures = map[string]float64{}
	keep := func(step string, figures map[string]float64) {
		for _, name := range sweep.Metrics() {
			if v, ok := figures[name]; ok {
				r.Figures[sweep.Name(step, name)] = v
			}
		}
	}
	var limits []sweep.Limit
	if len(w.state.Steps) > 0 { // an aborted run may lack later steps
		for i := range s.Steps {
			step := &s.Steps[i]
			keep(step.Name, step.Figures)
			limits = append(limits, sweep.Limit{
				Step: step.Name, Kind: string(step.Limit.Kind),
				Text: clean(step.Limit.String()),
			})
		}
	} else {
		keep("", s.Figures)
		limits = append(limits, sweep.Limit{Kind: string(s.Limit.Kind), Text: clean(s.Limit.String())})
	}
	r.SetLimits(limits)
	r.Demands = nil
	for i := range s.Thresholds {
		r.Demands = append(r.Demands, demandOf(&s.Thresholds[i]))
	}
	if len(s.Problems) > 0 {
		r.Problem = clean(s.Problems[0])
	}
}

func demandOf(o *threshold.Outcome) sweep.Demand {
	d := sweep.Demand{
		Step: o.Step, Threshold: o.Threshold.String(), Kept: o.Kept, Median: o.Threshold.Deferred,
		Target: o.Target,
	}
	if o.Known {
		d.Measured = &o.Measured
	}
	return d
}

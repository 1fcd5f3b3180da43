package sweep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/sweep/record"
)

// open reads the state of the sweep from its folder, or makes the folder.
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
	case err == nil:
		return s.resume(earlier)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
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

// resume continues a sweep.
func (s *Sweep) resume(earlier *record.Sweep) error {
	if earlier.Plan != s.state.Plan {
		return plan.Wrong("name another folder",
			"--result %s has a sweep of another plan: the scenario, its variables or the flags have changed", s.dir)
	}
	s.state.Resume(earlier)
	s.note("continuing the sweep in %s: %d of %d runs are finished", s.dir, s.finished(), len(s.state.Runs))
	return s.save()
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

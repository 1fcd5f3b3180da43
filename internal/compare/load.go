package compare

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

// maxRepeats bounds how many results a folder may hold: each is in memory at once.
const maxRepeats = 1000

// ErrIncomplete says that a run was killed, or still runs, so that its figures are not those of its plan.
var ErrIncomplete = errors.New("the run did not come to its end")

// Read reads a set: the result or the search in a folder, all in the folders in it, which are repeats, or those of each
// cell of a sweep. The check, if there is one, refuses results whose numbers contradict each other.
func Read(dir string, check func(*result.Result) error) (Set, error) {
	s := Set{Name: filepath.Base(filepath.Clean(dir)), check: check}
	err := s.add(dir)
	switch {
	case !errors.Is(err, result.ErrNoResult):
		return s, err
	case record.IsSweep(dir):
		return readSweep(s, dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		err := s.add(filepath.Join(dir, e.Name()))
		switch {
		case errors.Is(err, result.ErrNoResult):
			continue
		case err != nil:
			return s, err
		case len(s.Results) > maxRepeats:
			return s, tooMany(dir)
		}
	}
	if len(s.Results) == 0 {
		return s, fmt.Errorf("read %s: %w", dir, result.ErrNoResult)
	}
	return s, nil
}

func tooMany(dir string) error {
	return fmt.Errorf("read %s: more than %d results in one folder", dir, maxRepeats)
}

// add adds the result, or the search, in a folder.
func (s *Set) add(dir string) error {
	if record.IsSearch(dir) {
		r, of, err := readSearch(dir, s.check)
		if err != nil {
			return fmt.Errorf("read %s: %w", dir, err)
		}
		if s.searches == nil {
			s.searches = map[*result.Result]Search{}
		}
		s.searches[r] = of
		s.Results = append(s.Results, r)
		return nil
	}
	r, err := result.Read(dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", dir, err)
	}
	if !r.Complete {
		return fmt.Errorf("read %s: %w", dir, ErrIncomplete)
	}
	if err := checked(r, s.check); err != nil {
		return fmt.Errorf("read %s: %w", dir, err)
	}
	s.Results = append(s.Results, r)
	return nil
}

// checked calls the check, if there is one.
func checked(r *result.Result, check func(*result.Result) error) error {
	if check == nil {
		return nil
	}
	return check(r)
}

// readSweep reads the runs of a sweep. One without axes has one cell, whose runs are the set.
func readSweep(s Set, dir string) (Set, error) {
	of, err := record.ReadSweep(dir)
	if err != nil {
		return s, err
	}
	own := regexp.MustCompile("-" + regexp.QuoteMeta(of.ID) + `-[0-9]+-[0-9]+\b`)
	at := map[int]int{}
	total := 0
	for i := range of.Runs {
		r := &of.Runs[i]
		path := filepath.Join(dir, filepath.FromSlash(r.Folder))
		if r.State != record.Done {
			return s, fmt.Errorf("read %s: %w", path, ErrIncomplete)
		}
		k, known := at[r.Cell]
		if !known {
			k = len(s.Cells)
			at[r.Cell] = k
			s.Cells = append(s.Cells, Set{Name: of.Title(r.Values), key: of.Title(r.Values), check: s.check})
		}
		if err := s.Cells[k].add(path); err != nil {
			return s, err
		}
		if of.ID != "" { // fresh destinations have the names of their run
			last := s.Cells[k].Results[len(s.Cells[k].Results)-1]
			last.Plan = own.ReplaceAll(last.Plan, nil)
		}
		if total++; total > maxRepeats {
			return s, tooMany(dir)
		}
	}
	if len(of.Axes) == 0 && len(s.Cells) == 1 {
		name := s.Name
		s = s.Cells[0]
		s.Name = name
	}
	if total == 0 {
		return s, fmt.Errorf("read %s: %w", dir, result.ErrNoResult)
	}
	return s, nil
}

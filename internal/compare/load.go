package compare

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/perfmq/perfmq/pkg/result"
)

// maxRepeats bounds how many results a folder may hold: each is in memory at once.
const maxRepeats = 1000

// ErrIncomplete says that a run was killed, or still runs, so that its figures are not those of its plan.
var ErrIncomplete = errors.New("the run did not come to its end")

// Read reads a set: the result in a folder, or all results in the folders in it, which are repeats.
func Read(dir string) (Set, error) {
	s := Set{Name: filepath.Base(filepath.Clean(dir))}
	r, err := result.Read(dir)
	if errors.Is(err, result.ErrNoResult) {
		return readRepeats(s, dir)
	}
	if err != nil {
		return s, fmt.Errorf("read %s: %w", dir, err)
	}
	if !r.Complete {
		return s, fmt.Errorf("read %s: %w", dir, ErrIncomplete)
	}
	s.Results = append(s.Results, r)
	return s, nil
}

func readRepeats(s Set, dir string) (Set, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		r, err := result.Read(path)
		switch {
		case errors.Is(err, result.ErrNoResult):
			continue
		case err != nil:
			return s, fmt.Errorf("read %s: %w", path, err)
		case !r.Complete:
			return s, fmt.Errorf("read %s: %w", path, ErrIncomplete)
		case len(s.Results) == maxRepeats:
			return s, fmt.Errorf("read %s: more than %d results in one folder", dir, maxRepeats)
		}
		s.Results = append(s.Results, r)
	}
	if len(s.Results) == 0 {
		return s, fmt.Errorf("read %s: %w", dir, result.ErrNoResult)
	}
	return s, nil
}

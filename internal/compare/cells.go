package compare

import (
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

// cell is a cell of a sweep in all sets; one that does not have it is empty.
type cell struct {
	key, name string
	sets      []Set
}

// cellsOf returns the cells of sweeps, in the order of the first set, then those that only others have. Sets that are
// no sweeps are one cell without a name.
func cellsOf(sets []Set) (list []cell) {
	if !slices.ContainsFunc(sets, func(s Set) bool { return len(s.Cells) > 0 }) {
		return []cell{{sets: sets}}
	}
	for i := range sets {
		for _, c := range sets[i].Cells {
			at := slices.IndexFunc(list, func(known cell) bool { return known.key == c.key })
			if at < 0 {
				at = len(list)
				list = append(list, cell{c.key, c.Name, make([]Set, len(sets))})
			}
			list[at].sets[i] = c
		}
	}
	return list
}

// everywhere tells whether all sets have the cell.
func (c *cell) everywhere() bool {
	return !slices.ContainsFunc(c.sets, func(s Set) bool { return len(s.Results) == 0 })
}

// siftCells sifts each cell of a sweep. The set has the results of all.
func (s *Set) siftCells() {
	s.Results, s.Failed = nil, nil
	for i := range s.Cells {
		c := &s.Cells[i]
		c.Sift()
		s.Results = append(s.Results, c.Results...)
		s.Failed = append(s.Failed, c.Failed...)
	}
	s.Results = slices.DeleteFunc(s.Results, func(r *result.Result) bool { return slices.Contains(s.Failed, r) })
}

package compare

import (
	"fmt"

	"github.com/perfmq/perfmq/pkg/result"
)

// Failed tells why the figures of a run are not those of its plan: it lost or refused messages, or it ended early. It
// is empty for a run whose figures count, which may have missed a threshold.
func Failed(r *result.Result) string {
	o := &r.Outcome
	switch {
	case o.Aborted:
		return "ended early by a threshold"
	case !o.Success && len(o.Problems) > 0:
		return o.Problems[0]
	case !o.Success:
		return "no success"
	default:
		return ""
	}
}

// Sift takes the results of failed runs out of a set. If all have failed they stay.
func (s *Set) Sift() {
	if len(s.Cells) > 0 {
		s.siftCells()
		return
	}
	var good []*result.Result
	s.Failed = nil
	for _, r := range s.Results {
		if Failed(r) == "" {
			good = append(good, r)
		} else {
			s.Failed = append(s.Failed, r)
		}
	}
	if len(good) > 0 {
		s.Results = good
	}
}

// left tells whether the results of failed runs were taken out.
func (s *Set) left() bool { return len(s.Failed) > 0 && Failed(s.Results[0]) == "" }

// Notes says of each set, or each cell of it, with failed runs how many there are, and whether their figures are left
// out; and which cells a set does not have.
func Notes(sets []Set) (notes []string) {
	for _, c := range cellsOf(sets) {
		for i := range c.sets {
			s := c.sets[i]
			if c.name != "" {
				s.Name = sets[i].Name + " " + c.name
			}
			if len(s.Results) == 0 && len(s.Failed) == 0 {
				notes = append(notes, s.Name+": the sweep has no such cell")
			}
			notes = append(notes, s.notes()...)
		}
	}
	return notes
}

func (s *Set) notes() (notes []string) {
	if len(s.Failed) > 0 {
		why := Failed(s.Failed[0])
		_, search := s.searches[s.Failed[0]]
		switch n, all := len(s.Failed), len(s.Results); {
		case s.left():
			notes = append(notes, fmt.Sprintf("%s: %d of %d runs are left out, as they failed; the first: %s",
				s.Name, n, n+all, why))
		case search:
			notes = append(notes, fmt.Sprintf("%s: no search found a rate; the first: %s", s.Name, why))
		case n == 1:
			notes = append(notes, fmt.Sprintf("%s: the run failed, and its figures are those of a failed run: %s", s.Name, why))
		default:
			notes = append(notes, fmt.Sprintf("%s: all %d runs failed, and the figures are those of failed runs; the first: %s",
				s.Name, n, why))
		}
	}
	return notes
}

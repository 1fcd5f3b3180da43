package sweep

import "time"

// Length is how long a run lasts, as far as its plan says.
type Length struct {
	Known time.Duration
	// Open: a part of the run ends by a count, or when it is drained, at an unknown time.
	Open bool
}

// Total adds up the lengths of runs, with the pause after each but the last. Open is how many of them have a part of
// unknown length.
func Total(lengths []Length, settle time.Duration) (known time.Duration, open int) {
	for i, l := range lengths {
		known += l.Known
		if i > 0 {
			known += settle
		}
		if l.Open {
			open++
		}
	}
	return known, open
}

// Left estimates how long the runs take that are not done: as long as others of their cell did; else as their plan
// says, with the time that others took beyond theirs; else as long as the others on average. It is not known before the
// first such run is done. Lengths are those of the plans, by cell.
func (s *Sweep) Left(lengths map[int]Length, settle time.Duration) (left time.Duration, known bool) {
	type sum struct {
		took time.Duration
		n    int
	}
	var all, beyond sum
	cells := map[int]sum{}
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.State != Done {
			continue
		}
		c := cells[r.Cell]
		cells[r.Cell] = sum{c.took + r.Took(), c.n + 1}
		all = sum{all.took + r.Took(), all.n + 1}
		if l := lengths[r.Cell]; !l.Open {
			beyond = sum{beyond.took + max(0, r.Took()-l.Known), beyond.n + 1}
		}
	}
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.State == Done {
			continue
		}
		left += settle
		switch c, l := cells[r.Cell], lengths[r.Cell]; {
		case c.n > 0:
			left += c.took / time.Duration(c.n)
		case !l.Open && beyond.n > 0:
			left += l.Known + beyond.took/time.Duration(beyond.n)
		case !l.Open:
			left += l.Known
		case all.n > 0:
			left += all.took / time.Duration(all.n)
		default:
			return 0, false
		}
	}
	return left, true
}

package sweep

import (
	"fmt"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/sweep/record"
)

// length is how long a run lasts, as far as its plan says.
type length struct {
	known time.Duration
	// open: a part of the run ends by a count, when it is idle or drained, or with a command, at an unknown time.
	open bool
}

// lengthOf returns the known length of a run of a plan.
func lengthOf(p *plan.Plan) (l length) {
	for i := range p.Steps {
		s := &p.Steps[i]
		known := s.Duration
		counted := known == 0
		for _, g := range s.Groups {
			end, ends := g.Rate.End()
			_, constant := g.Rate.Constant()
			switch {
			case ends:
				known = max(known, end)
			case constant && g.Count > 0:
				known = max(known, g.Rate.At(g.Count-1))
			default:
				continue
			}
			counted = false
		}
		if s.Duration > 0 {
			known = min(known, s.Duration)
		}
		l.known += known
		l.open = l.open || counted || s.Idle > 0 || len(s.Before)+len(s.After) > 0
	}
	return l
}

// left estimates how long the runs take that are not done: as long as others of their cell did; else as their plan
// says, with the time that others took beyond theirs; else as long as the others on average. It is not known before the
// first such run is done.
func (s *Sweep) left() (left time.Duration, known bool) {
	type sum struct {
		took time.Duration
		n    int
	}
	var all, beyond sum
	cells := map[int]sum{}
	for i := range s.state.Runs {
		r := &s.state.Runs[i]
		if r.State != record.Done {
			continue
		}
		c := cells[r.Cell]
		cells[r.Cell] = sum{c.took + r.Took(), c.n + 1}
		all = sum{all.took + r.Took(), all.n + 1}
		if l := s.lengths[r.Cell]; !l.open {
			beyond = sum{beyond.took + max(0, r.Took()-l.known), beyond.n + 1}
		}
	}
	for i := range s.state.Runs {
		r := &s.state.Runs[i]
		if r.State == record.Done {
			continue
		}
		left += s.Settle
		switch c, l := cells[r.Cell], s.lengths[r.Cell]; {
		case c.n > 0:
			left += c.took / time.Duration(c.n)
		case !l.open && beyond.n > 0:
			left += l.known + beyond.took/time.Duration(beyond.n)
		case !l.open:
			left += l.known
		case all.n > 0:
			left += all.took / time.Duration(all.n)
		default:
			return 0, false
		}
	}
	return left, true
}

// estimate describes the expected length of the sweep.
func (s *Sweep) estimate() string {
	var known time.Duration
	open := 0
	for i := range s.state.Runs {
		l := s.lengths[s.state.Runs[i].Cell]
		known += l.known
		if i > 0 {
			known += s.Settle
		}
		if l.open {
			open++
		}
	}
	known = known.Round(time.Second)
	switch {
	case open == len(s.state.Runs) && known == 0:
		return "the time left is known when the first run has ended"
	case open > 0:
		return fmt.Sprintf("at least %v, and longer by what ends by a count, when it is idle, or with a command", known)
	default:
		return fmt.Sprintf("about %v, and what opening, draining and closing take", known)
	}
}

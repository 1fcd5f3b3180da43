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

// mean is the mean of lengths.
type mean struct {
	sum time.Duration
	n   int
}

func (m *mean) add(d time.Duration) { m.sum, m.n = m.sum+d, m.n+1 }

func (m *mean) value() time.Duration { return m.sum / time.Duration(max(1, m.n)) }

// left estimates how long the remaining runs take: as their plans say, with the time that others took beyond theirs.
// Runs without a known length take as long as others on average; without others that is unknown.
func (s *Sweep) left() (left time.Duration, known bool) {
	var took, beyond mean
	for i := range s.state.Runs {
		if r := &s.state.Runs[i]; r.State == record.Done {
			took.add(r.Took())
			if l := s.lengths[r.Cell]; !l.open {
				beyond.add(max(0, r.Took()-l.known))
			}
		}
	}
	for i := range s.state.Runs {
		r := &s.state.Runs[i]
		l := s.lengths[r.Cell]
		switch {
		case r.State == record.Done:
		case !l.open:
			left += s.Settle + l.known + beyond.value()
		case took.n > 0:
			left += s.Settle + took.value()
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

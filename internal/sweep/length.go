package sweep

import (
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/sweep/record"
)

// lengthOf returns how long the steps of a plan last by their durations; 0 if one has none.
func lengthOf(p *plan.Plan) (length time.Duration) {
	for i := range p.Steps {
		if p.Steps[i].Duration == 0 {
			return 0
		}
		length += p.Steps[i].Duration
	}
	return length
}

// left estimates how long the remaining runs take: as long as the finished ones on average or, before the first has
// ended, as their plans say.
func (s *Sweep) left() (left time.Duration, known bool) {
	var took time.Duration
	for i := range s.state.Runs {
		if r := &s.state.Runs[i]; r.State == record.Done {
			took += r.Took()
		}
	}
	finished := s.finished()
	for i := range s.state.Runs {
		length := s.lengths[s.state.Runs[i].Cell]
		switch {
		case s.state.Runs[i].State == record.Done:
			continue
		case finished > 0:
			length = took / time.Duration(finished)
		case length == 0:
			return 0, false
		}
		left += s.Settle + length
	}
	return left.Round(time.Second), true
}

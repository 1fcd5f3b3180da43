package load

import (
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
)

// Phases tells to which phase a moment of a run belongs: to the warm-up of the present step, or not. Its zero value is
// a run without a warm-up. It is safe for concurrent use.
type Phases struct{ from, to atomic.Int64 }

// NewPhases returns the phases of a run of one step, which begins with that warm-up.
func NewPhases(warmup time.Duration) *Phases {
	p := new(Phases)
	p.Begin(0, warmup)
	return p
}

// Begin starts a step at a moment of the run, with the warm-up that it begins with. Messages due before the step count
// as measured from then on, also those of the warm-up of an earlier step that have not ended since.
func (p *Phases) Begin(start, warmup time.Duration) {
	p.to.Store(0) // never a window that belongs to no step
	p.from.Store(int64(start))
	p.to.Store(int64(start + warmup))
}

// Of returns the phase of a moment: [stats.Warmup] or [stats.Measure].
func (p *Phases) Of(t time.Duration) stats.Phase {
	if t < time.Duration(p.to.Load()) && t >= time.Duration(p.from.Load()) {
		return stats.Warmup
	}
	return stats.Measure
}

// warmup returns the window of the present warm-up.
func (p *Phases) warmup() (from, to time.Duration) {
	return time.Duration(p.from.Load()), time.Duration(p.to.Load())
}

package load

import (
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
)

// Phases decides whether a moment of a run belongs to the warm-up of the present step. Its zero value is a run without
// a warm-up. It is safe for concurrent use.
type Phases struct{ from, to atomic.Int64 }

// Begin starts a step with its warm-up at a moment of the run. From then on, messages due before the step count as
// measured, even those due in the warm-up of an earlier step.
func (p *Phases) Begin(start, warmup time.Duration) {
	p.to.Store(0) // avoids a window of mixed steps
	p.from.Store(int64(start))
	p.to.Store(int64(start + warmup))
}

// PhaseAt returns the phase of a moment: [stats.Warmup] or [stats.Measure].
func (p *Phases) PhaseAt(t time.Duration) stats.Phase {
	if t < time.Duration(p.to.Load()) && t >= time.Duration(p.from.Load()) {
		return stats.Warmup
	}
	return stats.Measure
}

// warmup returns the window of the present warm-up.
func (p *Phases) warmup() (from, to time.Duration) {
	return time.Duration(p.from.Load()), time.Duration(p.to.Load())
}

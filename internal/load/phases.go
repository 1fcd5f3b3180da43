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

// Boundary decides which messages of a run were due in the warm-up of the present step: a producer's messages with an
// earlier time, within the step, than its first message after the warm-up. So the transfer time of a message counts in
// the same phase as its other latencies, although the message does not carry its due time. It is safe for concurrent
// use.
type Boundary struct {
	phases *Phases
	first  []atomic.Int64 // by producer: the time in its first message after the warm-up; 0 before that
	remote map[int64]bool // producers of other processes, without a value in first
}

// NewBoundary returns the boundary of a run with that many producers.
func NewBoundary(producers int, phases *Phases) *Boundary {
	return &Boundary{phases: phases, first: make([]atomic.Int64, producers), remote: map[int64]bool{}}
}

// AddRemote marks a producer of another process: its messages are judged by their times alone. Call it before the first
// Begin.
func (b *Boundary) AddRemote(producer int) {
	b.remote[int64(producer)] = true
}

// Begin starts a step. No producer may run.
func (b *Boundary) Begin() {
	for i := range b.first {
		b.first[i].Store(0)
	}
}

// setFirst stores the time of a producer's first message after the warm-up, before that message is sent.
func (b *Boundary) setFirst(producer int, stamp int64) {
	if b != nil {
		b.first[producer].Store(stamp)
	}
}

// phase returns the phase of a message that carries the time stamp. A negative producer is unknown.
func (b *Boundary) phase(producer, stamp int64, clock *Clock) stats.Phase {
	from, to := b.phases.warmup()
	if from == to || stamp < clock.Epoch(from) {
		return stats.Measure
	}
	warm := stamp < clock.Epoch(to)
	if producer >= 0 && producer < int64(len(b.first)) && !b.remote[producer] {
		first := b.first[producer].Load()
		warm = first == 0 || stamp < first
	}
	if warm {
		return stats.Warmup
	}
	return stats.Measure
}

package load

import (
	"sync/atomic"

	"github.com/perfmq/perfmq/internal/stats"
)

// Boundary tells which messages of a run were due in the warm-up of the present step: of each producer, messages that
// carry a time of the step earlier than that of its first message due after the warm-up. So a message's transfer time
// counts in the same phase as its other latencies, although the message does not carry the time at which it was due. It
// is safe for concurrent use.
type Boundary struct {
	phases *Phases
	first  []atomic.Int64 // by producer: the time that its first message after the warm-up carries; 0 before that
	remote map[int64]bool // producers of other processes, for which first is not known
}

// NewBoundary returns the boundary of a run with that many producers.
func NewBoundary(producers int, phases *Phases) *Boundary {
	return &Boundary{phases: phases, first: make([]atomic.Int64, producers)}
}

// Remote says that a producer is in another process. Its messages are told apart by the times that they carry alone.
// Call it before the first Begin.
func (b *Boundary) Remote(producer int) {
	if b.remote == nil {
		b.remote = map[int64]bool{}
	}
	b.remote[int64(producer)] = true
}

// Begin starts a step. No producer runs.
func (b *Boundary) Begin() {
	for i := range b.first {
		b.first[i].Store(0)
	}
}

// set notes the time of a producer's first message after the warm-up, before that is sent.
func (b *Boundary) set(producer int, stamp int64) {
	if b != nil {
		b.first[producer].Store(stamp)
	}
}

// phase returns the phase of a message that carries that time. A producer below zero is not known.
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

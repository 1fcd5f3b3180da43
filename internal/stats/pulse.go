package stats

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// beatInterval is the time between two beats.
	beatInterval = 20 * time.Millisecond
	// PauseLimit is the time without any activity of this process that counts as a pause. Beats come some milliseconds
	// late on a busy machine; a stopped process, or a suspended virtual machine, pauses for longer.
	PauseLimit = 200 * time.Millisecond
)

// Pulse beats during a run, to notice when perfmq was paused (SIGSTOP, a suspended virtual machine, no
// processor for a long time): messages in flight then took longer through no fault of the broker. It is safe for
// concurrent use; a nil Pulse never pauses.
type Pulse struct {
	clock   Clock
	blind   bool         // the use of the machine is not measured
	beat    atomic.Int64 // the last one, since the start of the run
	paused  atomic.Int64 // operations begun before this were in flight in the last pause; math.MinInt64 before the first
	resumed atomic.Int64 // when that pause ended; math.MinInt64 before the first

	mu     sync.Mutex
	pauses result.Tester // since the last take: only these
	stops  []gap         // the last maxStops pauses

	quit, done chan struct{}
}

// Clock tells the time since the start of a run.
type Clock interface {
	Now() time.Duration
	Start() time.Time
}

// NewPulse returns a pulse of the run with that clock. It does not beat yet.
func NewPulse(clock Clock) *Pulse {
	p := &Pulse{clock: clock, quit: make(chan struct{}), done: make(chan struct{})}
	p.paused.Store(math.MinInt64)
	p.resumed.Store(math.MinInt64)
	return p
}

// IgnoreMachine leaves out the use of the machine, which passes in real time while a test has a fake clock. Call it
// before Start and [Collector.SetPulse].
func (p *Pulse) IgnoreMachine() { p.blind = true }

// Start lets it beat until Stop. Call it once, after the clock has begun.
func (p *Pulse) Start() {
	p.beat.Store(int64(p.clock.Now()))
	go p.run()
}

// Stop ends the beats. Call it once, after Start.
func (p *Pulse) Stop() {
	close(p.quit)
	<-p.done
}

func (p *Pulse) run() {
	defer close(p.done)
	tick := time.Tick(beatInterval)
	for {
		select {
		case <-tick:
			p.tick(p.clock.Now())
		case <-p.quit:
			return
		}
	}
}

// tick is one beat.
func (p *Pulse) tick(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recordBeat(now)
}

// recordBeat records a beat, and the pause before it if there was one. p.mu is held.
func (p *Pulse) recordBeat(now time.Duration) {
	last := time.Duration(p.beat.Load())
	if length := now - last; length >= PauseLimit {
		p.pauses.Pauses++
		if len(p.stops) == maxStops {
			p.stops = p.stops[1:]
		}
		p.stops = append(p.stops, gap{from: last, to: now})
		if us := length.Microseconds(); us > p.pauses.PauseMax {
			p.pauses.PauseMax, p.pauses.PauseAt = us, p.clock.Start().Add(now).UnixMicro()
		}
		p.resumed.Store(int64(now))
		p.paused.Store(int64(begun(last, now))) // before the beat: see Spans
	}
	p.beat.Store(int64(now))
}

// Spans reports whether an operation between the two times, since the start of the run, took longer because perfmq
// was paused in between; the end is now. It may be called right after a pause, before the next beat.
func (p *Pulse) Spans(from, to time.Duration) bool {
	if p == nil {
		return false
	}
	beat := time.Duration(p.beat.Load())
	if to-beat >= PauseLimit && from < begun(beat, to) {
		return true
	}
	return int64(from) < p.paused.Load()
}

// Delayed reports whether an operation began after its due time because perfmq was paused in between, including
// one that began just at the end of the pause. Unlike for Spans, perfmq need not have run at the due time.
func (p *Pulse) Delayed(due, began time.Duration) bool {
	if p == nil {
		return false
	}
	before, resumed := time.Duration(p.paused.Load()), time.Duration(p.resumed.Load())
	return due < resumed && began >= resumed || due < before && began >= before
}

// begun returns the time before which an operation must have begun to have been in flight in a pause between two beats:
// just after the first beat, or, as that beat may have been late, PauseLimit before the second.
func begun(last, next time.Duration) time.Duration { return max(last+beatInterval, next-PauseLimit) }

// maxStops is the number of pauses that a pulse remembers.
const maxStops = 1024

// stopped returns the last maxStops pauses.
func (p *Pulse) stopped() []gap {
	_, stops := p.look(false)
	return stops
}

// stoodStill returns the length of perfmq's pauses in a time that ends about now.
func (p *Pulse) stoodStill(from, to time.Duration) (sum time.Duration) {
	for _, stop := range p.stopped() {
		sum += max(0, min(to, stop.to)-max(from, stop.from))
	}
	return sum
}

// look returns the pauses since the last one with take, and the last maxStops ones. It is a beat itself, as it may run
// before the first beat after a pause.
func (p *Pulse) look(take bool) (pauses result.Tester, stops []gap) {
	if p == nil {
		return pauses, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recordBeat(p.clock.Now())
	if take {
		p.pauses, pauses = pauses, p.pauses
	}
	return pauses, slices.Clone(p.stops)
}

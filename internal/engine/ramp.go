package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
)

// opening is the opening of a worker of a step.
type opening struct {
	at   time.Duration // from the start of the load; 0 before it
	open func(ctx context.Context, due time.Time) (adopt func(), err error)
	// start starts the open worker, once the load has begun.
	start func()
}

// ramp opens the workers of a step that come late. Its goroutines only open them: the goroutine of the load adopts and
// starts them, so that the state of the run needs no lock.
type ramp struct {
	list   []opening             // in the order of their moments
	opened chan func(start bool) // adopts a worker, and may start it
	ended  chan struct{}
	fresh  bool // one was adopted since the collector got the workers
}

// offset returns when a worker of the group begins its load, from the start of the step's.
func (u *use) offset(index, all int) time.Duration {
	if !u.ramped {
		return 0
	}
	return u.plan.RampWorkers / time.Duration(all) * time.Duration(index)
}

// producerOffset is offset of a producer.
func (u *use) producerOffset(p *producer) time.Duration { return u.offset(p.index, u.allProducers) }

// openLate opens the workers that come late, until ctx ends.
func (r *run) openLate(ctx context.Context) {
	defer close(r.ramp.ended)
	err := r.openEach(ctx, r.ramp.list, func(o opening, adopt func()) {
		adopted := make(chan struct{})
		r.ramp.opened <- func(start bool) {
			if adopt(); start {
				o.start()
			}
			close(adopted)
		}
		<-adopted
	})
	if err != nil && ctx.Err() == nil {
		r.failures <- ending{reason: "a worker could not be opened", err: err}
	}
}

// watchLate gives the collector the workers that were opened since the last call.
func (r *run) watchLate() {
	if r.ramp.fresh {
		r.ramp.fresh = false
		r.watchWorkers()
	}
}

// adopt makes a late worker one of the load, or only of the run if the load has ended.
func (r *run) adopt(worker func(start bool), start bool) {
	worker(start)
	r.openedWorkers++
	r.ramp.fresh = true
}

// endRamp adopts the workers that were opened too late for the load, which has ended, so that they are closed, or used
// by the next step.
func (r *run) endRamp() {
	if len(r.ramp.list) == 0 {
		return
	}
	for ended := false; !ended; {
		select {
		case worker := <-r.ramp.opened:
			r.adopt(worker, false)
		case <-r.ramp.ended:
			ended = true
		}
	}
	r.opening += min(r.clock.Now()-r.step.start, r.ramp.list[len(r.ramp.list)-1].at)
	r.watchLate()
	r.ramp.list = nil
}

// prepare orders the workers by their moments; the present producers of the load wait until they are due.
func (m *ramp) prepare(s *step, now time.Duration) {
	slices.SortStableFunc(m.list, func(a, b opening) int { return cmp.Compare(a.at, b.at) })
	for _, p := range s.producers {
		if p.driver == nil {
			p.rec.Wait(stats.WaitDue, now)
		}
	}
}

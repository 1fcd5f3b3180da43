package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
)

// latecomer is a worker that opens during the load.
type latecomer struct {
	at   time.Duration // from the start of the load
	open func(ctx context.Context, due time.Time) (adopt func(), err error)
	// start starts the open worker, once the load has begun.
	start func()
}

// ramp opens the workers of a step that come late. Its goroutines only open them: the goroutine of the load adopts and
// starts them, so that the state of the run needs no lock.
type ramp struct {
	list   []latecomer // in the order of their moments
	opened chan func() // adopts a worker, and starts it
	ended  chan struct{}
	fresh  bool // one was adopted since the collector got the workers

	mu   sync.Mutex
	left []func() // adopt workers that opened when the load was over
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

// open opens the workers at their moments, sixteen at a time, until ctx ends.
func (m *ramp) open(ctx context.Context, r *run, from time.Duration) {
	var opening sync.WaitGroup
	room := make(chan struct{}, openAtOnce)
	for _, l := range m.list {
		wait := from + l.at - r.clock.Now()
		if wait > 0 && !sleep(ctx, wait) {
			break
		}
		due := time.Now().Add(min(wait, 0))
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		opening.Go(func() {
			defer func() { <-room }()
			adopt, err := l.open(ctx, due)
			switch {
			case err == nil:
				m.pass(ctx, adopt, l.start)
			case ctx.Err() == nil:
				r.failures <- ending{reason: "a worker could not be opened", err: err}
			}
		})
	}
	opening.Wait()
	close(m.ended)
}

// pass lets the load adopt and start a worker, and waits for that; after the load, finish adopts it.
func (m *ramp) pass(ctx context.Context, adopt, start func()) {
	done := make(chan struct{})
	select {
	case m.opened <- func() { adopt(); start(); close(done) }:
		<-done
	case <-ctx.Done():
		m.mu.Lock()
		m.left = append(m.left, adopt)
		m.mu.Unlock()
	}
}

// watchLate gives the collector the workers that were opened since the last call.
func (r *run) watchLate() {
	if r.ramp.fresh {
		r.ramp.fresh = false
		r.watchWorkers()
	}
}

// adopt makes a late worker one of the load.
func (r *run) adopt(worker func()) {
	worker()
	r.openedWorkers++
	r.ramp.fresh = true
}

// endRamp adopts the workers that were opened too late for the load, which has ended, so that they are closed, or used
// by the next step.
func (r *run) endRamp() {
	if len(r.ramp.list) == 0 {
		return
	}
	<-r.ramp.ended
	r.opening += min(r.clock.Now()-r.step.start, r.ramp.list[len(r.ramp.list)-1].at)
	for _, adopt := range r.ramp.left {
		r.adopt(adopt)
	}
	r.watchLate()
	r.ramp.list, r.ramp.left = nil, nil
}

// delay adds a worker to those that come late.
func (m *ramp) delay(l latecomer) { m.list = append(m.list, l) }

// prepare orders the workers by their moments; the present producers of the load wait until they are due.
func (m *ramp) prepare(s *step, now time.Duration) {
	slices.SortStableFunc(m.list, func(a, b latecomer) int { return cmp.Compare(a.at, b.at) })
	for _, p := range s.producers {
		if p.driver == nil {
			p.rec.Wait(stats.WaitDue, now)
		}
	}
}

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
)

// ending says why the load ended.
type ending struct {
	reason      string
	interrupted bool
	err         error
}

// load lets the workers of the present step run until something ends its load, and stops the producers.
func (r *run) load(ctx context.Context, stop <-chan struct{}) ending {
	s := r.step
	r.phases.Begin(s.start, s.plan.Warmup)
	r.boundary.Begin()
	for _, u := range s.uses {
		for _, p := range u.producers {
			p.rec.SetRated(!u.plan.Rate.IsZero())
			u.base += p.rec.Ended() + p.rec.InFlight()
		}
	}
	r.sampler.begin(s.plan.Name, r.clock.Start().Add(s.start), s.plan.Warmup, s.plan.Duration)
	r.startConsumers()
	finished, stopProducers := r.startProducers(ctx)
	defer func() {
		stopProducers()
		s.loaded = r.clock.Now() - s.start
		if r.verify != nil {
			r.verify.sent = r.clock.Epoch(r.clock.Now())
		}
	}()

	var elapsed <-chan time.Time
	if s.plan.Duration > 0 {
		timer := time.NewTimer(s.start + s.plan.Duration - r.clock.Now())
		defer timer.Stop()
		elapsed = timer.C
	}
	producing := len(s.producers()) > 0
	if !producing {
		finished = nil
	}
	var look <-chan time.Time
	silence := r.listen()
	if silence != nil {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		look = ticker.C
	}
	var attend <-chan time.Time
	var drained func() bool
	if !producing && s.plan.Drained {
		drained = r.drainedAll()
	}
	if r.verify != nil && !producing || drained != nil {
		ticker := time.NewTicker(glance)
		defer ticker.Stop()
		attend = ticker.C
	}
	for sending := true; sending; {
		select {
		case <-elapsed:
			return ending{reason: "duration reached"}
		case <-s.used:
			return ending{reason: "message count reached"}
		case <-stop:
			return ending{reason: "interrupted", interrupted: true}
		case <-ctx.Done():
			return ending{reason: "interrupted", interrupted: true}
		case f := <-r.failures:
			return ending{reason: f.worker + " failed", err: fmt.Errorf("%s: %w", f.worker, f.err)}
		case <-attend:
			r.attend()
			if drained != nil && drained() {
				return ending{reason: "drained"}
			}
		case <-look:
			if err := silence.broken(); err != nil {
				r.silent = true
				return ending{reason: "no answer from the broker", err: err}
			}
		case <-finished:
			sending = false
		}
	}
	select { // producers end when they fail, too
	case f := <-r.failures:
		return ending{reason: f.worker + " failed", err: fmt.Errorf("%s: %w", f.worker, f.err)}
	default:
		return ending{reason: "message count reached"}
	}
}

// dueInStep returns how many messages the rates wanted to be sent while the load of the present step lasted.
func (r *run) dueInStep() (due uint64) {
	for _, u := range r.step.uses {
		u.due = r.step.due(u)
		u.sentInStep, _ = u.sent()
		due += u.due
	}
	return due
}

// due returns how many messages the rate of a group wanted to be sent while the load lasted; 0 without a rate.
func (s *step) due(u *use) uint64 {
	if len(u.producers) == 0 || u.plan.Rate.IsZero() {
		return 0
	}
	span := s.loaded
	if s.plan.Duration > 0 {
		span = min(span, s.plan.Duration)
	}
	due := u.plan.Rate.Due(span)
	if u.plan.Count > 0 {
		due = min(due, u.plan.Count)
	}
	return due
}

// sent returns how many messages a group has sent in the step.
func (u *use) sent() (sent, waiting uint64) {
	for _, p := range u.producers {
		inFlight := p.rec.InFlight()
		sent += p.rec.Ended() + inFlight
		waiting += inFlight
	}
	return sent - u.base, waiting
}

// rate sets the rates of the present step that are shares of what an earlier step has reached.
func (r *run) rate() error {
	for _, u := range r.step.uses {
		relative := u.plan.Relative
		if relative == nil {
			continue
		}
		i := slices.IndexFunc(r.ended, func(s stats.StepSummary) bool { return s.Name == relative.Step })
		if i < 0 {
			return fmt.Errorf("step %s: there was no step %s before it", r.step.plan.Name, relative.Step)
		}
		rate, err := relative.Of(r.ended[i].Figures[relative.Metric])
		if err != nil {
			return fmt.Errorf("the rate of group %s in step %s: %w", u.plan.Name, r.step.plan.Name, err)
		}
		g := *u.plan // the plan stays as it is
		g.Rate = load.ConstantSchedule(rate)
		u.plan = &g
	}
	return nil
}

package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/openings"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/reconnect"
)

// startConsumers starts the consumers of the present step that do not receive yet, and gives all of them the work of
// the step.
func (r *run) startConsumers() {
	for _, u := range r.step.uses {
		ctx := r.consuming
		var quota func()
		if n := u.quota(); n > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithCancel(ctx) // before any of them runs
			used := r.step.quotaUsed            // the last group ends the step
			quota = load.NewQuota(n, func() { stop(); used() })
		}
		job := load.Job{Work: u.plan.ConsumerWork}
		job.Fail = load.NewFail(u.plan.ConsumerFail, u.plan.Failing)
		if !u.plan.ConsumerRate.IsZero() { // in equal shares
			job.Each = time.Duration(float64(u.allConsumers) / u.plan.ConsumerRate.PerSecond() * float64(time.Second))
		}
		u.startConsumer = func(c *consumer) { r.startConsumer(ctx, c, quota, job) }
		for _, c := range u.consumers {
			switch {
			case c.driver == nil: // it opens later
			case c.load == nil:
				u.startConsumer(c)
			default:
				c.load.SetJob(job)
			}
		}
	}
	r.setReceiving(r.step.consumers)
}

// startConsumer starts a consumer, with its job from the first message on.
func (r *run) startConsumer(ctx context.Context, c *consumer, quota func(), job load.Job) {
	cfg := load.ConsumerConfig{
		OwnOnly: r.role == plan.Client, Run: r.id, Pulse: r.pulse, Phases: r.phases, Quota: quota, Checker: c.checker,
		Trace: c.trace, Precise: !r.plan.FakeClock, Shard: r.plan.Shard.Number, Shards: r.plan.Shard.Of,
	}
	if cfg.OwnOnly {
		cfg.Boundary = r.boundary
	}
	ctx, c.stop = context.WithCancel(ctx)
	ended := make(chan struct{})
	c.ended = ended
	c.load = load.NewConsumer(cfg, r.clock, c.rec, c.driver)
	c.load.SetJob(job)
	go func(receive *load.Consumer) {
		defer close(ended)
		err := receive.Run(ctx)
		if err == nil && ctx.Err() == nil {
			err = errors.New("it stopped receiving although it was not told to")
		}
		if err != nil {
			c.failed.Store(true)
			r.failures <- failed(c.spec.Name, err)
		}
	}(c.load)
}

// startProducers starts the producers of the present step. It returns a channel that is closed when all have ended, and
// a function that ends them.
func (r *run) startProducers(ctx context.Context) (finished chan struct{}, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, u := range r.step.uses {
		if u.openings != nil {
			u.opener = openings.New(r.openingsOf(u))
			opening := u.opener
			running.Go(func() { opening.Run(ctx) })
		}
		u.startProducer = func(p *producer) {
			ended := make(chan struct{})
			p.ended = ended
			from := u.producerOffset(p)
			work := load.Load{
				Index: p.index, Total: u.allProducers, Schedule: u.plan.Rate.Schedule, Count: u.plan.Count,
				Start: r.step.start + from, Until: max(0, r.step.plan.Duration-from),
				Mix: u.mix, Draws: u.drawsOf(p),
				Timed: u.sendTimeout() > 0, Resend: u.plan.Resend,
			}
			send := p.load.Run
			worker, reconnects := p.driver.(*reconnect.Producer)
			if reconnects {
				worker.Finish(false)
			}
			running.Go(func() {
				defer close(ended)
				if reconnects {
					defer worker.Finish(true)
				}
				if err := send(ctx, work); err != nil {
					r.failures <- failed(p.spec.Name, err)
				}
			})
		}
		for _, p := range u.producers {
			if p.driver != nil {
				u.startProducer(p)
			}
		}
	}
	if len(r.ramp.list) > 0 {
		r.ramp.ended = make(chan struct{})
		running.Go(func() { r.openLate(ctx) })
	}
	finished = make(chan struct{})
	go func() {
		running.Wait()
		close(finished)
	}()
	return finished, stop
}

// sendTimeout is the time after which the engine ends a message of the group without an answer; 0 if it does not, or
// the driver does so itself.
func (u *use) sendTimeout() time.Duration {
	if u.to == nil || u.to.Factory.Capabilities.TimesOut {
		return 0
	}
	return u.plan.SendTimeout
}

// startExpiry starts a goroutine for each group with a send time-out or requests, which ends messages without an answer
// and requests without a reply. The returned function stops them; later calls do nothing: a run may end before the load
// of its step begins.
func (s *step) startExpiry() (end func()) {
	quit := make(chan struct{})
	var looking sync.WaitGroup
	for _, u := range s.uses {
		limit := u.sendTimeout()
		shortest := limit
		if u.plan.Role.Requests() && (limit == 0 || u.plan.ReplyTimeout < limit) {
			shortest = u.plan.ReplyTimeout
		}
		if len(u.producers) == 0 || shortest == 0 {
			continue
		}
		looking.Go(func() {
			tick := time.Tick(load.ExpireEvery(shortest))
			for {
				select {
				case <-tick:
				case <-quit:
					return
				}
				for _, p := range u.producers {
					p.load.Expire(limit)
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(quit)
		looking.Wait()
	})
}

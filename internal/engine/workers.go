package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// openAtOnce bounds the connections that are being opened or closed at the same time: brokers refuse floods.
const openAtOnce = 16

type producer struct {
	spec   driver.ProducerSpec
	rec    *stats.ProducerRecorder
	load   *load.Producer
	driver driver.Producer // nil until opened
	ended  chan struct{}   // closed when load.Run has returned; nil until started
}

type consumer struct {
	spec    driver.ConsumerSpec
	rec     *stats.ConsumerRecorder
	checker *verify.Checker // nil if nothing is verified
	driver  driver.Consumer // nil until opened
	ended   chan struct{}   // closed when Run has returned; nil until started
}

// drivers are the two sides' drivers; the same one when both sides have the same broker.
type drivers struct{ producer, consumer driver.Driver }

func newProducer(r *run, index int, spec driver.ProducerSpec) *producer {
	rec := stats.NewProducerRecorder(!r.plan.Rate.IsZero(), r.pulse)
	if r.verify == nil {
		spec.Origin = driver.ID{Run: r.id, Producer: int64(index), Number: driver.Unnumbered}
	}
	if spec.CommitInterval > 0 {
		spec.Commits = r.commits(rec.Committed)
	}
	return &producer{spec: spec, rec: rec, load: load.NewProducer(load.ProducerConfig{
		Index: index, Total: r.plan.Producers * len(r.plan.Destinations),
		Schedule: load.ConstantSchedule(r.plan.Rate), Count: r.plan.Count, Until: r.plan.Duration, MaxPending: spec.MaxPending,
		Warmup: r.plan.Warmup, Boundary: r.boundary,
		Ledger:  r.verify.ledger(index, &spec),
		Precise: !r.plan.CoarseTimers,
	}, r.clock, rec)}
}

func newConsumer(r *run, spec driver.ConsumerSpec) *consumer {
	rec := stats.NewConsumerRecorder()
	if spec.TransactionSize > 0 {
		spec.Commits = r.commits(rec.Committed)
	}
	return &consumer{spec: spec, rec: rec}
}

// commits counts transactions in the phase in which the broker was asked to commit them.
func (r *run) commits(count func(due stats.Phase, took time.Duration, confirmed bool)) driver.Commits {
	return func(took time.Duration, confirmed bool) {
		due := stats.Measure
		if r.clock.Now()-took < r.plan.Warmup {
			due = stats.Warmup
		}
		count(due, took, confirmed)
	}
}

// open opens the drivers, then all consumers, then all producers. It stops at the first error.
func (r *run) open(ctx context.Context, stop <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	opened := make(chan struct{})
	defer close(opened)
	go func() {
		select {
		case <-stop:
			cancel(errors.New("interrupted while connecting"))
		case <-opened:
		}
	}()
	err := r.openAll(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

func (r *run) openAll(ctx context.Context) (err error) {
	if r.plan.Role.Consumes() {
		if r.drivers.consumer, err = openDriver(ctx, r.plan.Consumer); err != nil {
			return err
		}
	}
	if r.plan.Role.Produces() {
		if r.drivers.consumer != nil && r.plan.SameBroker() {
			r.drivers.producer = r.drivers.consumer
		} else if r.drivers.producer, err = openDriver(ctx, r.plan.Producer); err != nil {
			return err
		}
	}
	err = each(ctx, r.consumers, func(ctx context.Context, c *consumer) error {
		opened, err := opening(ctx, r.plan.Consumer, func(ctx context.Context) (driver.Consumer, error) {
			return r.drivers.consumer.Consumer(ctx, c.spec)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.spec.Name, err)
		}
		c.driver = opened
		return nil
	})
	if err != nil {
		return err
	}
	return each(ctx, r.producers, func(ctx context.Context, p *producer) error {
		opened, err := opening(ctx, r.plan.Producer, func(ctx context.Context) (driver.Producer, error) {
			return r.drivers.producer.Producer(ctx, p.spec, p.load)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", p.spec.Name, err)
		}
		p.driver = opened
		p.load.Attach(opened)
		return nil
	})
}

func openDriver(ctx context.Context, e plan.Endpoint) (driver.Driver, error) {
	return opening(ctx, e, func(ctx context.Context) (driver.Driver, error) { return e.Factory.Open(ctx, e.Open) })
}

// lastSay is how much longer than its connect time-out a driver may take: its own clock then ends the wait, and it can say
// what for.
const lastSay = 100 * time.Millisecond

// opening calls f with the connect time-out. When there is an error the value is nil, whatever f returned.
func opening[T any](ctx context.Context, e plan.Endpoint, f func(context.Context) (T, error)) (opened T, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.Open.ConnectTimeout+lastSay)
	defer cancel()
	v, err := within(ctx, f)
	const hint = "raise --connect-timeout or see whether the broker is well"
	switch {
	case errors.Is(err, errStuck):
		return opened, driver.Errorf(driver.ClassConnect, "connect", hint, "no answer within %s", e.Open.ConnectTimeout)
	case errors.Is(err, context.DeadlineExceeded) && driver.HintOf(err) == "":
		return opened, driver.Errorf(driver.ClassConnect, "", hint, "no answer within %s: %w", e.Open.ConnectTimeout, err)
	case err != nil:
		return opened, err
	}
	return v, nil
}

// each calls f for all items, some at once, until one fails.
func each[T any](ctx context.Context, items []T, f func(context.Context, T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(openAtOnce)
	for _, item := range items {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return f(ctx, item)
		})
	}
	return g.Wait()
}

func (r *run) startConsumers(ctx context.Context) {
	ctx, r.stopConsumers = context.WithCancel(context.WithoutCancel(ctx)) // they outlive an impatient user's ctx, shortly
	cfg := load.ConsumerConfig{
		OwnOnly: r.plan.Role == plan.Client, Run: r.id, Pulse: r.pulse, Warmup: r.plan.Warmup,
		Work: r.plan.ConsumerWork, Precise: !r.plan.CoarseTimers,
	}
	if !r.plan.ConsumerRate.IsZero() { // in equal shares
		cfg.Each = time.Duration(float64(len(r.consumers)) / r.plan.ConsumerRate.PerSecond() * float64(time.Second))
	}
	if cfg.OwnOnly {
		cfg.Boundary = r.boundary
	}
	if r.plan.Role == plan.Consumer && r.plan.Count > 0 {
		stop := r.stopConsumers
		cfg.Quota = load.NewQuota(r.plan.Count, func() {
			stop()
			close(r.quotaUsed)
		})
	}
	for _, c := range r.consumers {
		c.ended = make(chan struct{})
		cfg.Checker = c.checker
		w := load.NewConsumer(cfg, r.clock, c.rec, c.driver)
		go func() {
			defer close(c.ended)
			err := w.Run(ctx)
			if err == nil && ctx.Err() == nil {
				err = errors.New("it stopped receiving, but nobody told it to")
			}
			if err != nil {
				r.failures <- failure{c.spec.Name, err}
			}
		}()
	}
}

// startProducers returns a channel that is closed when all producers have ended, and a function that ends them.
func (r *run) startProducers(ctx context.Context) (finished chan struct{}, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, p := range r.producers {
		p.ended = make(chan struct{})
		wg.Go(func() {
			defer close(p.ended)
			if err := p.load.Run(ctx); err != nil {
				r.failures <- failure{p.spec.Name, err}
			}
		})
	}
	finished = make(chan struct{})
	go func() {
		wg.Wait()
		close(finished)
	}()
	return finished, stop
}

// Package engine carries out a plan: it opens the workers, lets the load run, drains what is under way, closes everything
// and says how it went.
//
//	open -> load (warm-up | measure) -> drain -> close -> summary
//
// Consumers are opened before producers, so that no message is sent before everybody who should get it is subscribed.
// Every wait has a deadline: opening by the connect time-out, draining by the drain time-out, closing the workers, side by
// side, by the connect time-out again, and the connections after them by two seconds. Where the drain has left messages in
// flight, closing ends as soon as nothing has closed for two seconds: a broker that does not answer one thing does not
// answer another. What is still open after that is reported by number instead of waited for.
//
// A load that nothing but --message-count ends is given up when the broker has shown no sign of life for the drain time-out.
//
// A second goroutine, the sampler, cuts the run into snapshots and feeds the reporters. Nothing else talks to them.
package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// ErrReporters is in the error of [Run] when it is the reporters that could not begin, not the workers.
var ErrReporters = errors.New("start reporters")

// Run carries out p and feeds reporter.
//
// Closing stop ends the load as the end of the duration does: no more sends, drain, close, summary. When ctx ends, the
// drain is cut short as well and Run returns as soon as it can; what was measured until then is still reported.
//
// The error is not nil when no load was made: a worker could not be opened, or a reporter could not begin ([ErrReporters]). Its
// class tells whether the broker could not be reached. Once load was made, the summary tells what went wrong and the error is nil.
func Run(
	ctx context.Context, stop <-chan struct{}, p *plan.Plan, reporter report.Reporter,
) (*stats.Summary, error) {
	r := newRun(p)
	if err := r.open(ctx, stop); err != nil {
		r.closeWorkers(ctx)
		return nil, err
	}
	if err := r.start(reporter); err != nil {
		r.closeWorkers(ctx)
		r.pulse.Stop()
		return nil, err
	}
	end := r.load(ctx, stop)
	draining := time.Now()
	r.loaded = draining.Sub(r.clock.Start())
	r.drain(ctx)
	r.drained = time.Since(draining)
	r.unanswered = r.inFlight() > 0
	r.stopped(ctx)
	left := r.closeWorkers(ctx)
	r.sampler.finish()
	r.pulse.Stop()
	s := r.summarize(end, left)
	return s, r.sampler.report(ctx, s)
}

// run is the state of one run.
type run struct {
	plan      *plan.Plan
	id        int64 // that its messages carry
	clock     *load.Clock
	pulse     *stats.Pulse
	boundary  *load.Boundary
	producers []*producer
	consumers []*consumer
	subs      []subscription
	drivers   drivers
	sampler   *sampler
	verify    *verification // nil if nothing is verified
	loaded    time.Duration // how long the load took
	drained   time.Duration // how long the drain took
	failures  chan failure  // of workers; has room for all of them

	silent     bool // the load was given up because the broker did not answer any more
	unanswered bool // the drain left messages in flight

	stopConsumers context.CancelFunc
	quotaUsed     chan struct{}
}

// failure is the end of a worker that should have gone on.
type failure struct {
	worker string
	err    error
}

func newRun(p *plan.Plan) *run {
	r := &run{
		plan: p, id: newRunNumber(), clock: load.NewClock(), stopConsumers: func() {}, quotaUsed: make(chan struct{}),
	}
	r.pulse = stats.NewPulse(r.clock)
	if p.Verify {
		r.verify = newVerification(r.id, p.VerifyFile)
	}
	process := processName()
	specs := p.ProducerSpecs(process)
	r.boundary = load.NewBoundary(len(specs), p.Warmup)
	for i, spec := range specs {
		r.producers = append(r.producers, newProducer(r, i, spec))
	}
	for _, spec := range p.ConsumerSpecs(process) {
		r.consumers = append(r.consumers, newConsumer(r, spec))
	}
	r.subs = subscriptions(r)
	if r.verify != nil {
		r.watch()
	}
	r.failures = make(chan failure, len(r.producers)+len(r.consumers))
	return r
}

// processName is what an operator sees on the broker's console, before the role and number of the connection.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("perfmq-%s-%d", host, os.Getpid())
}

// start starts the clock, the reporters and the sampler.
func (r *run) start(reporter report.Reporter) error {
	r.clock.Begin()
	r.pulse.Start()
	if r.verify != nil {
		r.verify.opened = r.clock.Epoch(0)
	}
	info := stats.Run{
		ID:        r.id,
		Producing: r.plan.Role.Produces(), Consuming: r.plan.Role.Consumes(), Rated: !r.plan.Rate.IsZero(),
		Start: r.clock.Start(), Warmup: r.plan.Warmup,
		Transacted: r.plan.CommitInterval > 0 || r.plan.Transacted,
		Protocol:   r.plan.Producer.Factory.Name, ConsumerProtocol: r.plan.Consumer.Factory.Name,
	}
	if r.plan.Role.Produces() {
		info.Client = r.plan.Producer.Client()
	}
	if r.plan.Role.Consumes() {
		info.ConsumerClient = r.plan.Consumer.Client()
	}
	if info.Protocol == "" {
		info.Protocol, info.Client = info.ConsumerProtocol, info.ConsumerClient
	}
	for _, d := range r.plan.Destinations {
		info.Destinations = append(info.Destinations, d.String())
	}
	if err := reporter.Start(info); err != nil {
		return fmt.Errorf("%w: %w", ErrReporters, err)
	}
	var precs []*stats.ProducerRecorder
	for _, p := range r.producers {
		precs = append(precs, p.rec)
	}
	var crecs []*stats.ConsumerRecorder
	for _, c := range r.consumers {
		crecs = append(crecs, c.rec)
	}
	collector := stats.NewCollector(precs, crecs, r.clock.Start())
	collector.Watch(r.workers())
	collector.Beat(r.pulse)
	if r.verify != nil && len(r.subs) > 0 {
		collector.Verify(r.progress)
	}
	r.sampler = startSampler(collector, reporter, r.clock.Start(), r.plan.Warmup, r.plan.Duration)
	return nil
}

// workers names the open workers and says what they can tell about themselves.
func (r *run) workers() []stats.Worker {
	var list []stats.Worker
	add := func(name string, destination driver.Destination, worker any) {
		w := stats.Worker{Name: name, Destination: destination.String()}
		w.Counters, _ = worker.(driver.Counting)
		w.Waits, _ = worker.(driver.Waiter)
		list = append(list, w)
	}
	for _, p := range r.producers {
		add(p.spec.Name, p.spec.Destination, p.driver)
	}
	for _, c := range r.consumers {
		add(c.spec.Name, c.spec.Destination, c.driver)
	}
	return list
}

// ending says why the load ended.
type ending struct {
	reason      string
	interrupted bool
	err         error
}

// load lets the workers run until something ends the load, and stops the producers.
func (r *run) load(ctx context.Context, stop <-chan struct{}) ending {
	r.startConsumers(ctx)
	finished, stopProducers := r.startProducers(ctx)
	defer stopProducers()
	if v := r.verify; v != nil {
		defer func() { v.sent = r.clock.Epoch(r.clock.Now()) }()
	}

	var elapsed <-chan time.Time
	if r.plan.Duration > 0 {
		timer := time.NewTimer(r.plan.Duration - r.clock.Now())
		defer timer.Stop()
		elapsed = timer.C
	}
	if len(r.producers) == 0 {
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
	if r.verify != nil && r.plan.Role == plan.Consumer {
		ticker := time.NewTicker(glance)
		defer ticker.Stop()
		attend = ticker.C
	}
	for sending := true; sending; {
		select {
		case <-elapsed:
			return ending{reason: "duration reached"}
		case <-r.quotaUsed:
			return ending{reason: "message count reached"}
		case <-stop:
			return ending{reason: "interrupted", interrupted: true}
		case <-ctx.Done():
			return ending{reason: "interrupted", interrupted: true}
		case f := <-r.failures:
			return ending{reason: f.worker + " failed", err: fmt.Errorf("%s: %w", f.worker, f.err)}
		case <-attend:
			r.attend()
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

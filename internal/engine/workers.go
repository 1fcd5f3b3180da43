package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
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

// group are the workers of a group of the plan, in all steps.
type group struct {
	plan      *plan.Group // as the step has it in which it was opened, or of its first step
	producers []*producer
	consumers []*consumer
	order     load.Mix // of the kinds of messages
	open      bool
}

type producer struct {
	spec   driver.ProducerSpec
	group  string // its name; empty on a command line
	site   string
	rec    *stats.ProducerRecorder
	ledger *verify.Ledger  // nil if nothing is verified
	load   *load.Producer  // of the present connection
	driver driver.Producer // nil unless open
	ended  chan struct{}   // closed when load.Run has returned; nil until started

	connections
}

type consumer struct {
	spec    driver.ConsumerSpec
	group   string // its name; empty on a command line
	site    string
	rec     *stats.ConsumerRecorder
	checker *verify.Checker // nil if nothing is verified
	load    *load.Consumer  // of the present connection; nil until started
	driver  driver.Consumer // nil unless open
	ended   chan struct{}   // closed when Run has returned; nil until started
	stop    context.CancelFunc
	kept    bool // its subscription stays when it closes, for a later step

	connections
}

// connections are those that a worker has had.
type connections struct {
	opened   int
	counters []driver.Counter // of the protocol's own, of the closed ones
	denied   uint64           // times that the broker gave those no leave to send

	socketWaits uint64 // times that the network took no more of those
}

// openDriver is a driver that workers of some groups share.
type openDriver struct {
	endpoint *plan.Endpoint
	side     string // "producers" or "consumers"
	driver   driver.Driver
}

func newGroup(r *run, g *plan.Group, process string) *group {
	workers := &group{plan: g}
	for _, spec := range g.ProducerSpecs(process) {
		workers.producers = append(workers.producers, newProducer(r, len(r.producers)+len(workers.producers), g, spec))
	}
	r.producers = append(r.producers, workers.producers...)
	for _, spec := range g.ConsumerSpecs(process) {
		c := &consumer{spec: spec, group: g.Name, site: g.Consumer.Site, rec: stats.NewConsumerRecorder()}
		if spec.TransactionSize > 0 {
			c.spec.Commits = r.commits(c.rec.Committed)
		}
		workers.consumers = append(workers.consumers, c)
	}
	r.consumers = append(r.consumers, workers.consumers...)
	return workers
}

func newProducer(r *run, id int, g *plan.Group, spec driver.ProducerSpec) *producer {
	p := &producer{spec: spec, group: g.Name, site: g.Producer.Site, rec: stats.NewProducerRecorder(!g.Rate.IsZero(), r.pulse)}
	if r.verify == nil {
		p.spec.Origin = driver.ID{Run: r.id, Producer: int64(id), Number: driver.Unnumbered}
	} else {
		p.ledger = r.verify.ledger(id, &p.spec, p.place())
	}
	if spec.CommitInterval > 0 {
		p.spec.Commits = r.commits(p.rec.Committed)
	}
	p.load = r.newLoad(id, p)
	return p
}

// newLoad returns what feeds a new connection of a producer.
func (r *run) newLoad(id int, p *producer) *load.Producer {
	var sizes []uint32
	for i := range p.spec.Variants {
		sizes = append(sizes, uint32(len(p.spec.Variants[i].Body))) //nolint:gosec // limited by the plan
	}
	return load.NewProducer(load.ProducerConfig{
		Sizes: sizes, ID: id, Phases: r.phases, Boundary: r.boundary, MaxPending: p.spec.MaxPending, Ledger: p.ledger, Precise: !r.plan.CoarseTimers,
	}, r.clock, p.rec)
}

// commits counts transactions in the phase in which the broker was asked to commit them.
func (r *run) commits(count func(due stats.Phase, took time.Duration, confirmed bool)) driver.Commits {
	return func(took time.Duration, confirmed bool) { count(r.phases.Of(r.clock.Now()-took), took, confirmed) }
}

// interruptible calls f with a context that stop ends, too.
func interruptible(ctx context.Context, stop <-chan struct{}, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-stop:
			cancel(errInterrupted)
		case <-done:
		}
	}()
	err := f(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

var errInterrupted = errors.New("interrupted while connecting")

// open opens the groups of the present step that are not open: their drivers, then all consumers, then all producers. It stops at
// the first error.
func (r *run) open(ctx context.Context) error {
	var consumers, producers []func(context.Context) error
	for _, u := range r.step.uses {
		if u.open {
			continue
		}
		u.open, u.order = true, u.plan.Order()
		r.respec(u)
		if err := r.openDrivers(ctx, u.plan); err != nil {
			return err
		}
		for _, c := range u.consumers {
			consumers = append(consumers, func(ctx context.Context) error { return r.openConsumer(ctx, u.plan, c) })
		}
		for _, p := range u.producers {
			if p.opened > 0 {
				p.load.Abandon()
				p.load = r.newLoad(slices.Index(r.producers, p), p)
			}
			producers = append(producers, func(ctx context.Context) error { return r.openProducer(ctx, u.plan, p) })
		}
	}
	if err := each(ctx, consumers); err != nil {
		return err
	}
	r.subscribe()
	return each(ctx, producers)
}

// respec lets the workers of a group that is opened again have the settings of the present step. Their names, and what counts
// their messages, stay.
func (r *run) respec(u *use) {
	if u.group.plan == u.plan {
		return
	}
	u.group.plan = u.plan
	process := processName()
	for i, spec := range u.plan.ProducerSpecs(process) {
		p := u.producers[i]
		spec.Origin, spec.Commits = p.spec.Origin, p.spec.Commits
		p.spec = spec
		if p.ledger != nil {
			p.ledger.SetBodies(r.verify.sums(&p.spec)...)
		}
	}
	for i, spec := range u.plan.ConsumerSpecs(process) {
		c := u.consumers[i]
		spec.Commits = c.spec.Commits
		c.spec = spec
	}
}

func (r *run) openConsumer(ctx context.Context, g *plan.Group, c *consumer) error {
	spec := c.spec
	c.kept = spec.Durable && !spec.KeepSubscription && r.returns(g)
	spec.KeepSubscription = spec.KeepSubscription || c.kept
	opened, err := openAt(ctx, r, &g.Consumer, func(ctx context.Context) (driver.Consumer, error) {
		return r.driver(&g.Consumer).Consumer(ctx, spec)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.spec.Name, err)
	}
	c.driver, c.ended, c.load = opened, nil, nil
	c.opened++
	return nil
}

func (r *run) openProducer(ctx context.Context, g *plan.Group, p *producer) error {
	opened, err := openAt(ctx, r, &g.Producer, func(ctx context.Context) (driver.Producer, error) {
		return r.driver(&g.Producer).Producer(ctx, p.spec, p.load)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", p.spec.Name, err)
	}
	p.driver, p.ended = opened, nil
	p.opened++
	p.load.Attach(opened)
	return nil
}

// openDrivers opens the drivers of a group, but for those that are open. The consumers' is first.
func (r *run) openDrivers(ctx context.Context, g *plan.Group) error {
	sides := []struct {
		has  bool
		e    *plan.Endpoint
		name string
	}{{g.Role.Consumes(), &g.Consumer, "consumers"}, {g.Role.Produces(), &g.Producer, "producers"}}
	for _, side := range sides {
		if !side.has {
			continue
		}
		if i := slices.IndexFunc(r.drivers, func(d *openDriver) bool { return d.endpoint.Same(side.e) }); i >= 0 {
			if r.drivers[i].endpoint.Broker == "" {
				r.drivers[i].side = side.name
			}
			continue
		}
		d, err := openAt(ctx, r, side.e, func(ctx context.Context) (driver.Driver, error) {
			return side.e.Factory.Open(ctx, side.e.Open)
		})
		if err != nil {
			return err
		}
		name := side.name
		if side.e.Broker != "" {
			name = "broker " + side.e.Broker
		}
		r.drivers = append(r.drivers, &openDriver{side.e, name, d})
	}
	return nil
}

// driver returns the open driver of a broker; nil if there is none.
func (r *run) driver(e *plan.Endpoint) driver.Driver {
	for _, d := range r.drivers {
		if d.endpoint.Same(e) {
			return d.driver
		}
	}
	return nil
}

// openAt opens something at a broker. With plan.WaitForBroker it tries again while the broker cannot be reached.
func openAt[T any](ctx context.Context, r *run, e *plan.Endpoint, f func(context.Context) (T, error)) (T, error) {
	deadline := time.Now().Add(r.plan.WaitForBroker)
	for {
		opened, err := opening(ctx, *e, f)
		if err == nil || !unreachable(err) || !time.Now().Add(brokerRetry).Before(deadline) {
			return opened, err
		}
		timer := time.NewTimer(brokerRetry)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return opened, err
		}
	}
}

// unreachable tells whether an error is that of a broker that is not there, or that is only coming up or going down.
func unreachable(err error) bool {
	switch driver.ClassOf(err) {
	case driver.ClassConnect, driver.ClassConnectionLost, driver.ClassClosedByBroker, driver.ClassTimeout:
		return true
	default:
		return false
	}
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

// each calls all functions, some at once, until one fails.
func each(ctx context.Context, list []func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(openAtOnce)
	for _, f := range list {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return f(ctx)
		})
	}
	return g.Wait()
}

// startConsumers lets the consumers of the present step receive that do not yet, and gives all of them the work of the step.
func (r *run) startConsumers() {
	for _, u := range r.step.uses {
		ctx := r.consuming
		var quota *load.Quota
		if len(u.producers) == 0 && u.plan.Count > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithCancel(ctx) // before any of them runs
			quota = load.NewQuota(u.plan.Count, r.step.quotaUsed(stop))
		}
		job := load.Job{Work: u.plan.ConsumerWork}
		if !u.plan.ConsumerRate.IsZero() { // in equal shares
			job.Each = time.Duration(float64(len(u.consumers)) / u.plan.ConsumerRate.PerSecond() * float64(time.Second))
		}
		for _, c := range u.consumers {
			if c.load == nil {
				r.startConsumer(ctx, c, quota)
			}
			c.load.Do(job)
		}
	}
}

func (r *run) startConsumer(ctx context.Context, c *consumer, quota *load.Quota) {
	cfg := load.ConsumerConfig{
		OwnOnly: r.role == plan.Client, Run: r.id, Pulse: r.pulse, Phases: r.phases, Quota: quota, Checker: c.checker,
		Precise: !r.plan.CoarseTimers,
	}
	if cfg.OwnOnly {
		cfg.Boundary = r.boundary
	}
	ctx, c.stop = context.WithCancel(ctx)
	ended := make(chan struct{})
	c.ended = ended
	c.load = load.NewConsumer(cfg, r.clock, c.rec, c.driver)
	receive := c.load.Run
	go func() {
		defer close(ended)
		err := receive(ctx)
		if err == nil && ctx.Err() == nil {
			err = errors.New("it stopped receiving, but nobody told it to")
		}
		if err != nil {
			r.failures <- failure{c.spec.Name, err}
		}
	}()
}

// startProducers returns a channel that is closed when all producers of the present step have ended, and a function that ends
// them.
func (r *run) startProducers(ctx context.Context) (finished chan struct{}, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	var running []chan struct{}
	for _, u := range r.step.uses {
		for i, p := range u.producers {
			ended := make(chan struct{})
			p.ended = ended
			running = append(running, ended)
			work := load.Load{
				Index: i, Total: len(u.producers), Schedule: u.plan.Rate, Count: u.plan.Count, Start: r.step.start, Until: r.step.plan.Duration,
				Mix: u.order,
			}
			send := p.load.Run
			go func() {
				defer close(ended)
				if err := send(ctx, work); err != nil {
					r.failures <- failure{p.spec.Name, err}
				}
			}()
		}
	}
	finished = make(chan struct{})
	go func() {
		for _, ended := range running {
			<-ended
		}
		close(finished)
	}()
	return finished, stop
}

// sameWorkers tells whether a group that is open with the one setting can go on with the other: nothing but its load differs.
func sameWorkers(a, b *plan.Group) bool {
	if a.Role.Consumes() && !a.Role.Produces() && (a.Count > 0 || b.Count > 0) {
		return false // its consumers stop one by one as the count is used up
	}
	x, y := *a, *b
	for _, g := range []*plan.Group{&x, &y} {
		g.Rate, g.Count, g.ConsumerWork, g.ConsumerRate = load.Schedule{}, 0, load.Work{}, load.Rate{}
		for _, e := range g.Sides() {
			e.Factory = driver.Factory{Name: e.Factory.Name, Client: e.Factory.Client} // functions do not compare
		}
		g.Body, g.Mix = nil, slices.Clone(g.Mix) // BodySource tells them apart
		for i := range g.Mix {
			g.Mix[i].Body = nil
		}
	}
	return reflect.DeepEqual(x, y)
}

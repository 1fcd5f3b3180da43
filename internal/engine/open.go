package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/reconnect"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// openAtOnce is the maximum number of connections that are opened or closed at the same time, because brokers refuse
// floods.
const openAtOnce = 16

var errInterrupted = errors.New("interrupted while connecting")

// interruptible returns a context that ends with ctx or stop, then with errInterrupted as the cause.
func interruptible(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-stop:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// causeOf returns the cause for which ctx has ended instead of the error of a call that this cut short.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// openGroups opens the closed groups of the present step: drivers, then all consumers, then all producers, but for the
// ones that open during its load. It stops at the first error.
func (r *run) openGroups(ctx context.Context) error {
	began := time.Now()
	var consumers, producers []opening
	add := func(list *[]opening, o opening) {
		if o.at > 0 {
			list = &r.ramp.list
		}
		*list = append(*list, o)
	}
	for _, u := range r.step.uses {
		if !u.open {
			u.open, u.mix = true, u.plan.Order(r.plan.Seed)
			r.updateSpecs(u)
			if err := r.openDrivers(ctx, u.plan); err != nil {
				return err
			}
			u.ramped = u.plan.RampWorkers > 0
			if u.openings != nil {
				if err := r.openFirst(ctx, u); err != nil {
					return err
				}
			}
		}
		for _, c := range u.consumers {
			if c.driver == nil { // of an open group: the load before ended before it was due
				add(&consumers, opening{
					u.offset(c.index, u.allConsumers), func(ctx context.Context, due time.Time) (func(), error) {
						return r.openConsumer(ctx, u.plan, c, due)
					}, func() { u.startConsumer(c) },
				})
			}
		}
		for _, p := range u.producers {
			if p.driver != nil {
				continue
			}
			if p.opened > 0 {
				p.load.Abandon()
				p.load = r.newLoad(u.plan, p)
			}
			add(&producers, opening{
				u.producerOffset(p), func(ctx context.Context, due time.Time) (func(), error) {
					return r.openProducer(ctx, u.plan, p, due)
				}, func() { u.startProducer(p) },
			})
		}
	}
	atOnce := func(_ opening, adopt func()) { adopt() }
	if err := r.openEach(ctx, consumers, atOnce); err != nil {
		return err
	}
	r.addSubscriptions()
	err := r.openEach(ctx, producers, atOnce)
	r.openedWorkers += len(consumers) + len(producers)
	r.opening += time.Since(began)
	return err
}

// manyWorkers is the number of workers whose opening is worth a finding.
const manyWorkers = 100

// findOpened reports how long many workers took to open, and the slow end of each stage.
func (r *run) findOpened(s *stats.Summary) {
	if r.openedWorkers < manyWorkers {
		return
	}
	var slow []string
	for _, kind := range []result.Kind{result.Connect, result.TLS, result.Login, result.Attach} {
		if l := s.Latencies[kind]; l != nil && l.Count > 0 {
			slow = append(slow, result.Kinds()[kind].Name+" p99 "+words.Duration(l.Percentile(99)))
		}
	}
	text := ""
	if slow != nil {
		text = " (" + strings.Join(slow, ", ") + ")"
	}
	n := uint64(r.openedWorkers) //nolint:gosec // not negative
	s.Find("opened", "", n, n, words.Seconds(r.opening), text)
}

// openConsumer opens a consumer that was due at a moment, or now if that is zero. The function that it returns makes
// it the consumer's connection.
func (r *run) openConsumer(ctx context.Context, g *plan.Group, c *consumer, due time.Time) (adopt func(), err error) {
	spec, e, stages := c.spec, r.readsFrom(g), r.stages[g.Name]
	c.kept = spec.Durable && !spec.KeepSubscription && r.opensAgain(g)
	last := spec
	last.KeepSubscription = spec.KeepSubscription || c.kept
	spec.KeepSubscription = last.KeepSubscription || g.Reconnect && spec.Durable // only its last connection removes it
	connect := func(ctx context.Context, spec driver.ConsumerSpec, order []int) (driver.Consumer, error) {
		spec.Connection.Order = order
		return openInTime(ctx, e, func(ctx context.Context) (driver.Consumer, error) {
			if spec.Correlated {
				return r.openResponder(ctx, e, c, spec)
			}
			return r.driver(e).Consumer(ctx, spec)
		})
	}
	spec.Connection.Stages = stages.Stage
	again := func(ctx context.Context, order []int) (driver.Consumer, error) {
		return timed(stages, due, func() (driver.Consumer, error) { return connect(ctx, spec, order) })
	}
	arrived := func(now driver.Consumer) { c.stays.recordHost(now, e) }
	opened, err := openRetrying(ctx, r, e, func(ctx context.Context) (driver.Consumer, error) {
		return again(ctx, spec.Connection.Order)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.spec.Name, err)
	}
	due = time.Time{}
	arrived(opened)
	if g.Reconnect {
		spec.Connection.Stages = r.outages.Stages(stages.Stage)
		links := r.links(spec.Name, g, e, &c.stays)
		if spec.KeepSubscription != last.KeepSubscription {
			links.Remove = func(ctx context.Context) error {
				c, err := connect(ctx, last, plan.Rotation(c.stays.lastIndex(e.Hosts), len(e.Hosts)))
				if err == nil {
					err = c.Close(ctx)
				}
				return err
			}
		}
		opened = reconnect.NewConsumer(links, opened, again, arrived)
	}
	return func() {
		c.driver, c.ended, c.load = opened, nil, nil
		c.opened++
	}, nil
}

// openProducer is openConsumer for a producer.
func (r *run) openProducer(ctx context.Context, g *plan.Group, p *producer, due time.Time) (adopt func(), err error) {
	e, spec, stages := r.sendsTo(g), p.spec, r.stages[g.Name]
	spec.Connection.Stages = stages.Stage
	connect := func(ctx context.Context, order []int, done driver.Completions) (driver.Producer, error) {
		spec := spec
		spec.Connection.Order = order
		open := func(ctx context.Context) (driver.Producer, error) {
			if spec.Requests {
				return r.openRequester(ctx, g, e, p, spec, done)
			}
			return r.driver(e).Producer(ctx, spec, done)
		}
		return timed(stages, due, func() (driver.Producer, error) { return openInTime(ctx, e, open) })
	}
	arrived := func(now driver.Producer) { p.stays.recordHost(now, e) }
	var done driver.Completions = p.load
	ends := reconnect.NewEnds(p.load)
	if g.Reconnect {
		done = ends
	}
	opened, err := openRetrying(ctx, r, e, func(ctx context.Context) (driver.Producer, error) {
		return connect(ctx, spec.Connection.Order, done)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	due = time.Time{}
	arrived(opened)
	if g.Reconnect {
		spec.Connection.Stages = r.outages.Stages(stages.Stage)
		opened = reconnect.NewProducer(r.links(spec.Name, g, e, &p.stays), opened, p.load, ends, connect, arrived)
	}
	return func() {
		p.driver, p.ended = opened, nil
		p.opened++
		p.load.Attach(opened)
	}, nil
}

// timed opens a worker that was due at a moment, or now if that is zero, and records how long that took.
func timed[T any](stages *stats.Stages, due time.Time, open func() (T, error)) (T, error) {
	if due.IsZero() {
		due = time.Now()
	}
	opened, err := open()
	if err == nil {
		stages.Opened(time.Since(due))
	}
	return opened, err
}

// usualReconnectDelay is the longest pause between attempts, as the help of --reconnect-delay has it.
const usualReconnectDelay = 250 * time.Millisecond

// links returns what a worker at an endpoint needs to reconnect.
func (r *run) links(name string, g *plan.Group, e *Endpoint, stays *stays) *reconnect.Config {
	var spread func() time.Duration
	if g.ReconnectSpread > 0 {
		//nolint:gosec // no secret
		draw := rand.New(rand.NewPCG(r.plan.Seed, uint64(crc32.ChecksumIEEE([]byte(name)))))
		spread = func() time.Duration { return time.Duration(draw.Int64N(int64(g.ReconnectSpread))) }
	}
	return &reconnect.Config{
		Spread: spread,
		Name:   name, URL: e.URL, Hosts: &r.probed, Order: func() []int { return stays.orderAfter(g, e) },
		Timeout: g.ReconnectTimeout, Delay: cmp.Or(g.ReconnectDelay, usualReconnectDelay),
		AtOnce: openAtOnce, Outages: r.outages,
		Shut: func(closing func(context.Context) error) {
			ctx, cancel := context.WithTimeout(context.Background(), min(e.ConnectTimeout, closeTimeout))
			defer cancel()
			_ = closer{close: closing}.shut(ctx) // its errors do not matter
		},
	}
}

// openDrivers opens the drivers of a group that are not open yet, the consumers' first.
func (r *run) openDrivers(ctx context.Context, g *plan.Group) error {
	for _, e := range []*Endpoint{r.readsFrom(g), r.sendsTo(g)} {
		if e == nil || r.driver(e) != nil {
			continue
		}
		var err error
		open := func(ctx context.Context) (driver.Driver, error) { return e.Factory.Open(ctx, e.OpenOptions) }
		e.driver, err = openRetrying(ctx, r, e, func(ctx context.Context) (driver.Driver, error) {
			return openInTime(ctx, e, open)
		})
		if err != nil {
			return err
		}
		r.opened = append(r.opened, e)
	}
	return nil
}

// driver returns the open driver of a broker, or nil.
func (r *run) driver(e *Endpoint) driver.Driver {
	for _, o := range r.opened {
		if o.Same(e.Broker) {
			return o.driver
		}
	}
	return nil
}

// openRetrying opens something at a broker. With plan.WaitForBroker it tries again while the broker cannot be reached.
func openRetrying[T any](ctx context.Context, r *run, e *Endpoint, f func(context.Context) (T, error)) (T, error) {
	deadline := time.Now().Add(r.plan.WaitForBroker)
	for {
		opened, err := openDiagnosed(ctx, e, f)
		if err == nil || !reconnect.Unreachable(err) || !time.Now().Add(retryInterval).Before(deadline) ||
			!sleep(ctx, retryInterval) {
			return opened, err
		}
	}
}

// openInTime calls f with the connect time-out. With an error the value is nil, whatever f returned.
func openInTime[T any](ctx context.Context, e *Endpoint, f func(context.Context) (T, error)) (opened T, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.ConnectTimeout+openGrace)
	defer cancel()
	v, err := callWithin(ctx, f)
	const hint = "raise --connect-timeout or see whether the broker is well"
	switch {
	case errors.Is(err, errStuck):
		return opened, driver.Errorf(driver.ClassConnect, "connect", hint, "no answer within %s", e.ConnectTimeout)
	case errors.Is(err, context.DeadlineExceeded) && driver.HintOf(err) == "":
		return opened, driver.Errorf(driver.ClassConnect, "", hint, "no answer within %s: %w", e.ConnectTimeout, err)
	case driver.ClassOf(err) == driver.ClassAuth && e.User == "" && !plan.HasUser(e.URL):
		return opened, driver.Errorf(driver.ClassAuth, "", "no user was given: add --user and --password", "%s", err)
	case err != nil:
		return opened, err
	}
	return v, nil
}

// openEach opens workers at their moments, up to openAtOnce at a time, until one fails or ctx ends.
func (r *run) openEach(ctx context.Context, list []opening, opened func(o opening, adopt func())) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(openAtOnce)
	for _, o := range list {
		var due time.Time
		if o.at > 0 {
			wait := r.step.start + o.at - r.clock.Now()
			if wait > 0 && !sleep(ctx, wait) {
				break
			}
			due = time.Now().Add(min(wait, 0))
		}
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			adopt, err := o.open(ctx, due)
			if err == nil {
				opened(o, adopt)
			}
			return err
		})
	}
	return g.Wait()
}

// suspicion is how long a broker may take to answer a connection before perfmq asks whether it is one of the protocol.
const suspicion = time.Second

// diagnose returns what is wrong with the broker of an endpoint; nil if nothing was found. Diagnose is asked once in a
// run: later, a silent broker is an overloaded one.
func (e *Endpoint) diagnose(ctx context.Context) error {
	if e.Factory.Diagnose == nil {
		return nil
	}
	e.once.Do(func() {
		e.asked = make(chan struct{})
		go func() {
			defer close(e.asked)
			e.wrong = e.Factory.Diagnose(ctx, e.OpenOptions)
		}()
	})
	<-e.asked
	return e.wrong
}

// openDiagnosed calls f. It fails soon, and with the cause, if the broker speaks another protocol.
func openDiagnosed[T any](ctx context.Context, e *Endpoint, f func(context.Context) (T, error)) (opened T, err error) {
	trying, end := context.WithCancelCause(ctx)
	defer end(nil)
	timer := time.AfterFunc(suspicion, func() {
		if wrong := e.diagnose(trying); wrong != nil {
			end(wrong)
		}
	})
	defer timer.Stop()
	opened, err = f(trying)
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, syscall.ECONNREFUSED):
		return opened, err
	case trying.Err() != nil:
		return opened, context.Cause(trying)
	}
	class := driver.ClassOf(err)
	if class == driver.ClassAuth && e.Factory.Client != "" { // go-amqp has no type for an answer in another protocol
		class = driver.ClassProtocol
	}
	switch class {
	case driver.ClassConnect, driver.ClassConnectionLost, driver.ClassTimeout, driver.ClassProtocol, driver.ClassTLS:
		if wrong := e.diagnose(trying); wrong != nil {
			return opened, wrong
		}
	}
	return opened, err
}

// awaitStart waits until the planned start of the load.
func (r *run) awaitStart(ctx context.Context) error {
	if r.plan.StartAt.IsZero() {
		return nil
	}
	start := r.plan.StartAt.Add(-r.plan.ClockShift)
	if late := time.Since(start); late > 0 {
		return driver.Errorf(driver.ClassTimeout, "", "give a later --start-at: connecting takes its time",
			"the workers were open %s after the moment of --start-at", late.Round(time.Millisecond))
	}
	for left := time.Until(start); left > 0; left = time.Until(start) { // repeated in case the wall clock is set
		if !sleep(ctx, min(left, time.Second)) {
			return ctx.Err()
		}
	}
	return nil
}

// Endpoint is a broker of the plan with the driver that reaches it.
type Endpoint struct {
	*plan.Broker
	Factory driver.Factory
	// Inspector asks the broker for its own counts by another way than the driver's; nil leaves it to the driver.
	Inspector driver.Inspector

	driver driver.Driver // open, for all endpoints of the broker; nil in the others

	once  sync.Once // for Diagnose
	asked chan struct{}
	wrong error // its answer, after asked is closed
}

// Reach returns the endpoints of a plan.
func Reach(p *plan.Plan, drivers plan.Drivers) map[*plan.Broker]*Endpoint {
	all := map[*plan.Broker]*Endpoint{}
	for _, b := range p.Brokers() {
		all[b] = &Endpoint{Broker: b, Factory: *drivers(b)}
	}
	return all
}

// sendsTo returns the endpoint of the group's producers, or nil.
func (r *run) sendsTo(g *plan.Group) *Endpoint {
	if !g.Role.Produces() && g.Role != plan.Connections {
		return nil
	}
	return r.endpoints[g.ProducerBroker]
}

// readsFrom returns the endpoint of the group's consumers, or nil.
func (r *run) readsFrom(g *plan.Group) *Endpoint {
	if !g.Role.Consumes() {
		return nil
	}
	return r.endpoints[g.ConsumerBroker]
}

// brokers returns the identities that brokers reported, in the order of the plan: the producers' first.
func (r *run) brokers() (list []result.Broker) {
	for _, g := range r.plan.Groups() {
		for _, side := range g.Sides() {
			identified, ok := r.driver(r.endpoints[side]).(driver.Identified)
			if !ok {
				continue
			}
			b := result.Broker{Name: side.Name, Protocol: side.Protocol}
			b.Product, b.Version = identified.Broker()
			if len(g.Brokers()) > 1 {
				b.Side = "consumers"
				if side == g.ProducerBroker {
					b.Side = "producers"
				}
			}
			if b.Product != "" && !slices.Contains(list, b) {
				list = append(list, b)
			}
		}
	}
	return list
}

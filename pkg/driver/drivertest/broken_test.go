package drivertest_test

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/perfmq/perfmq/pkg/driver"
)

// broken is the mem driver with one thing wrong. Nil functions leave things as they are.
type broken struct {
	factory  func(*driver.Factory)
	open     func(*driver.OpenOptions)
	opened   func(error) error // changes the error of Producer and Consumer
	sends    func(*driver.ProducerSpec)
	receives func(*driver.ConsumerSpec)
	done     func(driver.Completions) driver.Completions
	send     func(*producer, context.Context, *driver.Message) error
	trySend  func(*producer, *driver.Message) bool
	flush    func(*producer, context.Context) error
	closeP   func(*producer, context.Context) error
	onEnd    func(ended func(error)) func(error)
	run      func(*consumer, context.Context, deliver) error
	closeC   func(*consumer, context.Context) error
	deliver  func(c *consumer, d *driver.Delivery, next deliver) driver.Verdict
	address  func(*consumer) string
	probe    func(*consumer, context.Context) error
	host     func(string) string
	waits    func(driver.Waits) driver.Waits
	counters func([]driver.Counter) []driver.Counter
	inspect  func([]driver.DestinationCount)
	identify func(*brokenDriver) (product, version string)
	connect  func(driver.Held) driver.Held
	consumer func(*brokenDriver, context.Context, driver.ConsumerSpec) (driver.Consumer, error) // replaces Driver.Consumer
	producer func(*brokenDriver, context.Context, driver.ProducerSpec, driver.Completions) (driver.Producer, error)
}

type deliver = func(*driver.Delivery) driver.Verdict

// wrap puts it in front of a factory's drivers. Calls that hang end with end.
func (k *broken) wrap(end context.Context, f driver.Factory) driver.Factory {
	inner := f.Open
	f.Open = func(ctx context.Context, opts driver.OpenOptions) (driver.Driver, error) {
		if k.open != nil {
			k.open(&opts)
		}
		d, err := inner(ctx, opts)
		return &brokenDriver{Driver: d, broken: k, end: end, marks: map[string]bool{}}, err
	}
	if k.factory != nil {
		k.factory(&f)
	}
	return f
}

type brokenDriver struct {
	driver.Driver
	*broken
	end context.Context

	mu    sync.Mutex
	marks map[string]bool // of the mutants
	last  driver.Delivery // a copy of the last delivery
}

// Inspect implements [driver.Inspector].
func (d *brokenDriver) Inspect(ctx context.Context, destinations []driver.Destination) ([]driver.DestinationCount, error) {
	list, err := d.Driver.(driver.Inspector).Inspect(ctx, destinations)
	if err == nil && d.inspect != nil {
		d.inspect(list)
	}
	return list, err
}

// Connect implements [driver.Connector].
func (d *brokenDriver) Connect(ctx context.Context, spec driver.Connection) (driver.Held, error) {
	h, err := d.Driver.(driver.Connector).Connect(ctx, spec)
	if err == nil && d.connect != nil {
		h = d.connect(h)
	}
	return h, err
}

// Broker implements [driver.Identified].
func (d *brokenDriver) Broker() (product, version string) {
	if d.identify != nil {
		return d.identify(d)
	}
	return d.Driver.(driver.Identified).Broker()
}

// mark notes something for a mutant, and returns whether it was noted before.
func (d *brokenDriver) mark(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.marks[what]
	d.marks[what] = true
	return before
}

func (d *brokenDriver) marked(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.marks[what]
}

func (d *brokenDriver) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completions) (driver.Producer, error) {
	if d.producer != nil {
		return d.producer(d, ctx, spec, done)
	}
	return d.openProducer(ctx, spec, done)
}

func (d *brokenDriver) openProducer(ctx context.Context, spec driver.ProducerSpec, done driver.Completions) (driver.Producer, error) {
	p := &producer{d: d, spec: spec, done: done}
	if d.sends != nil {
		d.sends(&spec)
	}
	if d.done != nil {
		done = d.done(done)
	}
	var err error
	p.Producer, err = d.Driver.Producer(ctx, spec, done)
	if err != nil && d.opened != nil {
		err = d.opened(err)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (d *brokenDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	if d.consumer != nil {
		return d.consumer(d, ctx, spec)
	}
	return d.openConsumer(ctx, spec)
}

func (d *brokenDriver) openConsumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	c := &consumer{d: d, spec: spec}
	if d.receives != nil {
		d.receives(&spec)
	}
	var err error
	c.Consumer, err = d.Driver.Consumer(ctx, spec)
	if err != nil && d.opened != nil {
		err = d.opened(err)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// producer is one of mem, which is embedded, with the faults of the mutant.
type producer struct {
	driver.Producer
	d    *brokenDriver
	spec driver.ProducerSpec
	done driver.Completions // of the suite
	sent atomic.Uint64
	held []driver.Message // of the mutants
}

func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	p.sent.Add(1)
	if p.d.send != nil {
		return p.d.send(p, ctx, m)
	}
	return p.Producer.Send(ctx, m)
}

// TrySend is Send, which does not wait in mem without faults.
func (p *producer) TrySend(m *driver.Message) bool {
	if p.d.trySend != nil {
		p.sent.Add(1)
		return p.d.trySend(p, m)
	}
	return p.Send(context.Background(), m) == nil
}

func (p *producer) Flush(ctx context.Context) error {
	if p.d.flush != nil {
		return p.d.flush(p, ctx)
	}
	return p.Producer.(driver.Flusher).Flush(ctx)
}

func (p *producer) Close(ctx context.Context) error {
	if p.d.closeP != nil {
		return p.d.closeP(p, ctx)
	}
	return p.Producer.Close(ctx)
}

func (p *producer) Host() string { return p.d.changeHost(p.Producer) }

func (p *producer) OnEnd(ended func(error)) {
	if p.d.onEnd != nil {
		ended = p.d.onEnd(ended)
	}
	p.Producer.(driver.Watched).OnEnd(ended)
}

func (p *producer) Waits() driver.Waits { return p.d.changeWaits(p.Producer.(driver.Waiter).Waits()) }

func (p *producer) Counters() []driver.Counter {
	return p.d.changeCounters([]driver.Counter{
		{Name: "calls-of-send", Help: "calls of Send", Value: p.sent.Load()}, {Name: "nothing", Help: "always 0"},
	})
}

func (d *brokenDriver) changeHost(worker any) string {
	host := worker.(driver.Located).Host()
	if d.host != nil {
		host = d.host(host)
	}
	return host
}

func (d *brokenDriver) changeWaits(w driver.Waits) driver.Waits {
	if d.waits != nil {
		return d.waits(w)
	}
	return w
}

func (d *brokenDriver) changeCounters(list []driver.Counter) []driver.Counter {
	if d.counters != nil {
		return d.counters(list)
	}
	return list
}

// consumer is one of mem, which is embedded, with the faults of the mutant.
type consumer struct {
	driver.Consumer
	d        *brokenDriver
	spec     driver.ConsumerSpec
	n        int // of the mutants
	received atomic.Uint64
}

func (c *consumer) Run(ctx context.Context, next deliver) error {
	if c.d.deliver != nil {
		inner := next
		next = func(d *driver.Delivery) driver.Verdict { return c.d.deliver(c, d, inner) }
	}
	counting := func(d *driver.Delivery) driver.Verdict {
		c.received.Add(1)
		return next(d)
	}
	if c.d.run != nil {
		return c.d.run(c, ctx, counting)
	}
	return c.Consumer.Run(ctx, counting)
}

func (c *consumer) Close(ctx context.Context) error {
	if c.d.closeC != nil {
		return c.d.closeC(c, ctx)
	}
	return c.Consumer.Close(ctx)
}

func (c *consumer) Probe(ctx context.Context) error {
	if c.d.probe != nil {
		return c.d.probe(c, ctx)
	}
	return c.Consumer.(driver.Prober).Probe(ctx)
}

func (c *consumer) Host() string { return c.d.changeHost(c.Consumer) }

func (c *consumer) Address() string {
	if c.d.address != nil {
		return c.d.address(c)
	}
	return c.Consumer.(driver.Addressed).Address()
}

func (c *consumer) Waits() driver.Waits { return c.d.changeWaits(c.Consumer.(driver.Waiter).Waits()) }

func (c *consumer) Counters() []driver.Counter {
	return c.d.changeCounters([]driver.Counter{{Name: "deliveries", Help: "calls of deliver", Value: c.received.Load()}})
}

// completions changes ends of sends on their way to the suite.
type completions struct {
	done func(driver.Slot, driver.Outcome)
	all  func([]driver.Slot, driver.Outcome) // nil: done for each
}

func (c completions) Done(s driver.Slot, o driver.Outcome) { c.done(s, o) }

func (c completions) DoneAll(slots []driver.Slot, o driver.Outcome) {
	if c.all != nil {
		c.all(slots, o)
		return
	}
	for _, s := range slots {
		c.done(s, o)
	}
}

// ends makes a mutant that passes the end of each send through f.
func ends(f func(done driver.Completions, s driver.Slot, o driver.Outcome)) func(driver.Completions) driver.Completions {
	return func(done driver.Completions) driver.Completions {
		return completions{done: func(s driver.Slot, o driver.Outcome) { f(done, s, o) }}
	}
}

// outcomes makes a mutant that changes the outcome of each send by f.
func outcomes(f func(driver.Outcome) driver.Outcome) func(driver.Completions) driver.Completions {
	return ends(func(done driver.Completions, s driver.Slot, o driver.Outcome) { done.Done(s, f(o)) })
}

// messages makes a mutant that changes each sent message by f.
func messages(f func(*driver.Message)) func(*producer, context.Context, *driver.Message) error {
	return func(p *producer, ctx context.Context, m *driver.Message) error {
		changed := *m
		f(&changed)
		return p.Producer.Send(ctx, &changed)
	}
}

// eachVariant makes a mutant that changes the kinds of messages by f.
func eachVariant(f func(*driver.Variant)) func(*driver.ProducerSpec) {
	return func(s *driver.ProducerSpec) {
		list := make([]driver.Variant, len(s.Variants))
		copy(list, s.Variants)
		for i := range list {
			f(&list[i])
		}
		s.Variants = list
	}
}

// everyFiftieth returns a function that is true each fiftieth time.
func everyFiftieth() func() bool {
	var n atomic.Int64
	return func() bool { return n.Add(1)%50 == 0 }
}

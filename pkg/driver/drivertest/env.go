package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/pkg/driver"
)

// env is one sub-test. Everything that it opens is closed, and checked, when the test ends.
type env struct {
	testing.TB
	cfg  *Config
	kind driver.Kind     // of the destinations under test
	ctx  context.Context //nolint:containedctx // of the test
	// broken: the connection was broken on purpose. Close may return errors, but must return.
	broken bool
	// final are checks to repeat when everything has been closed: they find calls that come too late.
	final []func() error
}

// options returns the driver's own options, from Config.Options.
func (e *env) options() any {
	o := e.cfg.Factory.NewOptions()
	require.NoError(e, driver.SetOptions(o, e.cfg.Options), "Config.Options")
	return o
}

func (e *env) openOptions(url string) driver.OpenOptions {
	return driver.OpenOptions{
		URL: url, User: e.cfg.User, Password: e.cfg.Password, TLS: e.cfg.TLS,
		ConnectTimeout: e.cfg.Timeout, Options: e.options(),
	}
}

// has reports whether protocol and broker have a feature of the kind of destinations under test.
func (e *env) has(f Feature) bool {
	works, _ := e.cfg.works(f, e.kind)
	return works
}

// within is a context that ends after the timeout.
func (e *env) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(e.ctx, d)
	e.Cleanup(cancel)
	return ctx
}

func (e *env) soon() context.Context { return e.within(e.cfg.Timeout) }

// bounded calls f, which must return within limit, and fails the test at once if it does not.
func (e *env) bounded(limit time.Duration, what string, f func() error) error {
	e.Helper()
	result := make(chan error, 1)
	go func() { result <- f() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-timer.C:
		require.FailNowf(e, "hangs", "%s did not return within %v", what, limit)
		return nil
	}
}

// await waits until f returns nil; what names the awaited event. Each change of its error is progress, which prolongs
// the wait, four times at most.
func (e *env) await(what string, changed <-chan struct{}, f func() error) {
	e.Helper()
	deadline := time.NewTimer(e.cfg.Timeout)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last, prolonged := "", 0
	for err := f(); err != nil; err = f() {
		select {
		case <-changed:
		case <-tick.C:
		case <-deadline.C:
			if text := err.Error(); prolonged < 4 && text != last {
				last, prolonged = text, prolonged+1
				deadline.Reset(e.cfg.Timeout)
				continue
			}
			require.FailNowf(e, "timeout", "%s: after %v %v", what, e.cfg.Timeout, err)
		}
	}
}

// quiet lets time pass in which something must not happen.
func (e *env) quiet() { pause(e.cfg.Quiet) }

func pause(d time.Duration) { <-time.After(d) }

// gate is a wait that ends with release, at the latest at the end of the test.
type gate struct {
	open context.Context //nolint:containedctx // a state to wait for
	// release ends all waits. It may be called again.
	release func()
}

func (e *env) gate() *gate {
	ctx, cancel := context.WithCancel(context.Background())
	e.Cleanup(cancel)
	return &gate{ctx, cancel}
}

func (g *gate) wait() { <-g.open.Done() }

// open opens a driver on the broker.
func (e *env) open() driver.Driver { e.Helper(); return e.openURL(e.cfg.URL) }

func (e *env) openURL(url string) driver.Driver { e.Helper(); return e.openWith(e.openOptions(url)) }

func (e *env) openWith(opts driver.OpenOptions) driver.Driver {
	e.Helper()
	d, err := e.cfg.Factory.Open(e.soon(), opts)
	require.NoError(e, err, "open the driver")
	require.NotNil(e, d, "Open returned no error and no driver")
	e.Cleanup(func() {
		for _, which := range []string{"Driver.Close", "Driver.Close, called again,"} {
			e.closes(e.closing(), which, d.Close)
		}
	})
	return d
}

// closes calls a Close and checks its result and time.
func (e *env) closes(ctx context.Context, which string, f func(context.Context) error) {
	e.Helper()
	err := e.bounded(e.cfg.Timeout+grace, which, func() error { return f(ctx) })
	if !e.broken && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
		require.NoError(e, err, which)
	}
}

// closing returns a context for Close that still works during the clean-up of the test. It is short when the way to the
// broker is broken: no answer will come.
func (e *env) closing() context.Context {
	limit := e.cfg.Timeout
	if e.broken {
		limit = min(limit, brokenClose)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	e.Cleanup(cancel)
	return ctx
}

const brokenClose = time.Second

// dest is a new destination of the kind under test.
func (e *env) dest() driver.Destination { return e.cfg.NewDestination(e, e.kind) }

func connection(key string) driver.Connection {
	return driver.Connection{Key: key, Name: unique("perfmq-test-" + key)}
}

// producerSpec returns a spec with nothing but the required fields.
func producerSpec(dest driver.Destination) driver.ProducerSpec {
	return driver.ProducerSpec{
		Connection: connection("p"), Destination: dest, Name: unique("producer"), MaxPending: 100, Variants: variants(64),
	}
}

// variants returns plain messages with bodies of these sizes.
func variants(sizes ...int) []driver.Variant {
	list := make([]driver.Variant, 0, len(sizes))
	for _, size := range sizes {
		list = append(list, driver.Variant{Body: payload(size), Priority: -1})
	}
	return list
}

// each changes all variants.
func each(list []driver.Variant, edit func(*driver.Variant)) {
	for i := range list {
		edit(&list[i])
	}
}

// payload returns a body in which each byte depends on its position.
func payload(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + size)
	}
	return b
}

// consumerSpec returns a spec with nothing but the required fields.
func consumerSpec(dest driver.Destination) driver.ConsumerSpec {
	return driver.ConsumerSpec{Connection: connection("c"), Destination: dest, Name: unique("consumer")}
}

// keptSpec returns the spec of a consumer for which messages wait while it is away: of a queue, or a durable
// subscription. See [keeps].
func (e *env) keptSpec(dest driver.Destination) driver.ConsumerSpec {
	spec := consumerSpec(dest)
	if e.kind == driver.Topic {
		spec.Connection.ClientID = unique("perfmq-test")
		spec.Subscription, spec.Durable, spec.KeepSubscription = "subscription-1", true, true
	}
	return spec
}

// subscribe creates the subscription of a kept consumer, so that messages wait for it.
func (e *env) subscribe(spec driver.ConsumerSpec) {
	e.Helper()
	if e.kind == driver.Topic {
		d := e.open()
		e.consumer(d, spec).close()
		e.closes(e.closing(), "Driver.Close", d.Close)
	}
}

// last is the spec of the last consumer of a subscription: the subscription ends with it.
func last(spec driver.ConsumerSpec) driver.ConsumerSpec {
	spec.KeepSubscription = false
	return spec
}

// sharedSpec returns the spec of consumers that share messages: of a queue, or a shared subscription.
func (e *env) sharedSpec(dest driver.Destination) driver.ConsumerSpec {
	spec := consumerSpec(dest)
	if e.kind == driver.Topic {
		spec.Connection.ClientID = unique("perfmq-test")
		spec.Subscription, spec.Shared = "shared-1", true
	}
	return spec
}

// explore tries the driver, for each kind of destination, and finds out which optional interfaces it implements.
func (c *Config) explore(t testing.TB) error {
	e := &env{TB: t, cfg: c, ctx: context.WithoutCancel(t.Context())}
	d, err := c.Factory.Open(e.soon(), e.openOptions(c.URL))
	if err != nil {
		return err
	}
	defer func() { _ = d.Close(e.soon()) }()
	for _, kind := range c.kinds() {
		dest := c.NewDestination(t, kind)
		consumer, err := d.Consumer(e.soon(), consumerSpec(dest))
		if err != nil {
			return err
		}
		defer func() { _ = consumer.Close(e.soon()) }()
		producer, err := d.Producer(e.soon(), producerSpec(dest), driver.DoneFunc(func(driver.Slot, driver.Outcome) {}))
		if err != nil {
			return err
		}
		defer func() { _ = producer.Close(e.soon()) }()
		c.has = optionalOf(d, producer, consumer)
		if inspector, ok := d.(driver.Inspector); ok { // it depends on the broker
			_, err := inspector.Inspect(e.soon(), []driver.Destination{dest})
			c.has["Inspector"] = driver.ClassOf(err) != driver.ClassUnsupported
		}
	}
	return nil
}

// leaks returns a function that looks for goroutines that are not there now, and gives them Timeout to end.
func (c *Config) leaks() func() error {
	options := append([]goleak.Option{
		goleak.IgnoreCurrent(), // and of the functions of Config that ask over HTTP:
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	}, c.IgnoreGoroutines...)
	return func() error {
		deadline := time.Now().Add(c.Timeout)
		err := goleak.Find(options...)
		for wait := 100 * time.Millisecond; err != nil && time.Now().Before(deadline); wait *= 2 {
			pause(wait)
			err = goleak.Find(options...)
		}
		return err
	}
}

// checkEnd looks, when everything else of the test has been cleaned up, for goroutines that were not there before and
// for calls that come too late. If the test is not alone, runAll does that after all that are made together.
func (e *env) checkEnd(alone bool) {
	leaks := func() error { return nil }
	if alone {
		leaks = e.cfg.leaks()
	}
	e.Cleanup(func() {
		if e.Failed() {
			return // calls that hang have been reported
		}
		require.NoError(e, leaks(), "goroutines are left after Driver.Close")
		for _, check := range e.final {
			require.NoError(e, check())
		}
		if ends := e.cfg.ends; !alone && ends != nil {
			ends.mu.Lock()
			defer ends.mu.Unlock()
			ends.final[e.Name()] = e.final
		}
	})
}

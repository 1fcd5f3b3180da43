package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// optional says which of the optional interfaces a driver, or a producer or consumer of it, has.
type optional map[string]bool

func optionalOf(parties ...any) optional {
	has := optional{}
	for _, party := range parties {
		for name, implements := range map[string]bool{
			"Identified": is[driver.Identified](party), "Inspector": is[driver.Inspector](party),
			"Prober": is[driver.Prober](party), "TrySender": is[driver.TrySender](party),
			"Located": is[driver.Located](party), "Watched": is[driver.Watched](party),
			"Waiter": is[driver.Waiter](party), "Counting": is[driver.Counting](party),
			"Connector": is[driver.Connector](party),
		} {
			has[name] = has[name] || implements
		}
	}
	return has
}

func is[T any](party any) bool {
	_, ok := party.(T)
	return ok
}

// testIdentified: the driver knows its broker's product once a connection was opened, also after Close, and the version
// that the settings name.
func testIdentified(e *env) {
	d := e.open()
	identified, ok := d.(driver.Identified)
	require.True(e, ok, "a driver is a driver.Identified, and another of the same factory is not")
	out, in := e.pair(d, nil)
	e.await("Broker", nil, func() error {
		if product, _ := identified.Broker(); product == "" {
			return errors.New("it does not know its broker")
		}
		return nil
	})
	product, version := identified.Broker()
	out.close()
	in.close()
	require.NoError(e, d.Close(e.soon()), "Close")
	product2, version2 := identified.Broker()
	require.Equal(e, []string{product, version}, []string{product2, version2}, "the broker before and after Close")
	require.NotEmpty(e, version, "the broker's version")
	require.LessOrEqual(e, max(len(product), len(version)), driver.MaxBrokerText,
		"the length of what the broker says of itself")
	if words := strings.Fields(strings.ReplaceAll(e.cfg.Broker, ",", " ")); slices.ContainsFunc(words, isNumber) {
		require.Contains(e, words, version, "the words of Config.Broker, and the broker's version")
	}
}

// isNumber reports whether a word starts like a version.
func isNumber(word string) bool { return word[0] >= '0' && word[0] <= '9' }

// testLocated: Host is the host that a worker is connected to, by the order of the URL and by its own.
func testLocated(e *env) {
	const size = 16 << 10
	a, b := e.cfg.Path(e), e.cfg.Path(e)
	_, second, _ := splitURL(b.URL())
	_, first, _ := splitURL(a.URL())
	url := withHosts(a.URL(), first+","+second)
	require.NotNil(e, e.cfg.Factory.Hosts, "Factory.Hosts of a driver whose workers are driver.Located")
	hosts := e.cfg.Factory.Hosts(url)
	require.Len(e, hosts, 2, "Factory.Hosts of "+url)
	require.Nil(e, e.cfg.Factory.Hosts("no URL"), "Factory.Hosts of what is no URL")
	d, direct := e.openURL(url), e.open()
	// connected opens workers and checks which way their messages take.
	connected := func(order []int, host string, through, beside Path) {
		e.Helper()
		dest := e.dest()
		cspec, pspec := consumerSpec(dest), producerSpec(dest)
		cspec.Connection = driver.Connection{Key: unique("c"), Name: unique("c"), Order: order}
		pspec.Connection = driver.Connection{Key: unique("p"), Name: unique("p"), Order: order}
		cspec.Name, pspec.Variants = unique("consumer"), variants(size)
		in := e.receiver(d, cspec)
		out := e.producer(d, pspec)
		consumer, producer := in.consumer, out.producer
		before, besides := through.Received(), beside.Received()
		spec := producerSpec(dest)
		spec.Variants = variants(size)
		e.producer(direct, spec).sendAll(base, 1)
		out.sendAll(base+1, 1)
		in.expect(base, 2)
		require.GreaterOrEqual(e, through.Received()-before, int64(2*size), "bytes from the first host in the order")
		require.Less(e, beside.Received()-besides, int64(size), "bytes from the second host in the order")
		located := func(when string) {
			e.Helper()
			for what, worker := range map[string]any{"consumer": consumer, "producer": producer} {
				if l, ok := worker.(driver.Located); ok {
					require.Equalf(e, host, l.Host(), "the host of a %s%s", what, when)
				}
			}
		}
		located("")
		out.close()
		in.close()
		located(" after Close")
	}
	connected(nil, hosts[0], a, b)
	connected([]int{1, 0}, hosts[1], b, a)
	connected([]int{1}, hosts[1], b, a)
	a.Cut()
	connected(nil, hosts[1], b, a)
	alone := producerSpec(e.dest())
	alone.Connection = driver.Connection{Key: unique("p"), Name: unique("p"), Order: []int{0}}
	p, err := d.Producer(e.soon(), alone, driver.DoneFunc(func(driver.Slot, driver.Outcome) {}))
	if err == nil {
		_ = p.Close(e.soon())
	}
	require.Error(e, err, "a producer whose order has only the host that is cut off")
}

// testInspect: the broker's counters grow by the number of messages sent, and by the number settled.
func testInspect(e *env) {
	const n = 30
	d, dest := e.open(), e.dest()
	spec := consumerSpec(dest)
	if e.kind == driver.Topic && e.has(DurableSubscription) { // a topic without subscriptions stores nothing
		spec = e.keptSpec(dest)
	}
	none := e.dest()
	in := e.consumer(e.open(), spec)
	inspector, ok := d.(driver.Inspector)
	if e.cfg.Inspector != nil {
		inspector, ok = e.cfg.Inspector(e.kind), true
	}
	require.True(e, ok, "a driver is a driver.Inspector, and another of the same factory is not")
	inspect := func(what string, done func(driver.DestinationCount) error) (got driver.DestinationCount) {
		e.Helper()
		e.await("the broker's counters "+what, nil, func() error {
			list, err := inspector.Inspect(e.soon(), []driver.Destination{none, dest})
			if err != nil {
				return err
			}
			require.Len(e, list, 2, "Inspect of two destinations")
			require.Equal(e, uint64(0), list[0].Depth.N+list[0].Added.N+list[0].Acknowledged.N+list[0].Consumers.N,
				"counters of a destination that nobody uses")
			got = list[1]
			return done(got)
		})
		return got
	}
	differs := func(what string, got driver.Count, want uint64) error {
		if got.Known && got.N != want {
			return fmt.Errorf("%s is %d instead of %d", what, got.N, want)
		}
		return nil
	}
	before := inspect("before", func(driver.DestinationCount) error { return nil })
	require.True(e, before.Added.Known, "messages added are known")
	e.producer(d, producerSpec(dest)).sendAll(base, n)
	inspect("after sending", func(c driver.DestinationCount) error {
		return errors.Join(differs("Added", c.Added, before.Added.N+n), differs("Depth", c.Depth, before.Depth.N+n))
	})
	in.run()
	in.expect(base, n)
	inspect("after receiving", func(c driver.DestinationCount) error {
		return errors.Join(differs("Added", c.Added, before.Added.N+n), differs("Depth", c.Depth, before.Depth.N),
			differs("Acknowledged", c.Acknowledged, before.Acknowledged.N+n))
	})
	in.close()
	if e.kind == driver.Topic && spec.KeepSubscription {
		e.again(e.open(), last(spec)).close()
	}
}

// idle returns how long a consumer had nothing to do, if it knows.
func idle(w driver.Waits) (time.Duration, bool) {
	switch {
	case w.Input.Known:
		return w.Input.Time, true
	case w.Reader.Known:
		return w.Reader.Time, true
	}
	return 0, false
}

// testWaits: a consumer that receives nothing reports an idle time of about the true length; a producer that the broker
// blocks reports a wait.
func testWaits(e *env) {
	const patience = time.Second
	path := e.cfg.Path(e)
	d, dest := e.openURL(path.URL()), e.dest()
	in := e.receiver(d, consumerSpec(dest))
	spec := producerSpec(dest)
	spec.MaxPending, spec.Variants = 4000, variants(16<<10)
	out := e.producer(d, spec)
	if consumer, ok := in.consumer.(driver.Waiter); ok {
		e.requireIdle(consumer)
	}
	producer, ok := out.producer.(driver.Waiter)
	if !ok {
		return
	}
	out.sendAll(base, 10)
	before := blocked(producer.Waits())
	e.broken = true
	path.Freeze()
	begin := time.Now()
	err := out.sendSome(patience, 1<<20)
	for err != nil && blocked(producer.Waits()).Times == before.Times && time.Since(begin) < e.cfg.Timeout {
		err = out.sendSome(patience, 1<<20) // a busy machine has not filled the buffers of the connection yet
	}
	require.Error(e, err, "Send to a frozen broker")
	took := time.Since(begin)
	for range 2 {
		now := blocked(producer.Waits())
		require.Greater(e, now.Times, before.Times, "waits of a producer whose Send was blocked by the broker")
		require.Greater(e, now.Time, before.Time, "the time that a producer has waited whose Send was blocked by the broker")
		require.LessOrEqual(e, now.Time-before.Time, took, "the time that a producer has waited, and that has passed")
		out.closeWith(e.within(patience)) // and the same afterwards
	}
}

// requireIdle checks the idle time of a consumer that receives nothing.
func (e *env) requireIdle(consumer driver.Waiter) {
	e.Helper()
	if _, known := idle(consumer.Waits()); !known {
		return
	}
	e.await("Waits of a consumer that has nothing to receive", nil, func() error {
		if waited, _ := idle(consumer.Waits()); waited == 0 {
			return fmt.Errorf("it has not waited")
		}
		return nil
	})
	for range 3 {
		earliest := time.Now()
		first, _ := idle(consumer.Waits())
		begin := time.Now()
		e.quiet()
		passed := time.Since(begin)
		second, _ := idle(consumer.Waits())
		require.GreaterOrEqual(e, second-first, passed/2,
			"the time that a consumer has waited that received nothing, and half of what has passed")
		require.LessOrEqual(e, second-first, time.Since(earliest), "the time that a consumer has waited, and what has passed")
	}
}

// blocked returns how a producer has waited for the broker.
func blocked(w driver.Waits) driver.Wait {
	return driver.Wait{
		Times: w.Credit.Times + w.Socket.Times + w.Answer.Times, Time: w.Credit.Time + w.Socket.Time + w.Answer.Time,
	}
}

// testProbe: a live broker answers a probe while messages are received, a frozen broker does not.
func testProbe(e *env) {
	path := e.cfg.Path(e)
	d, dest := e.openURL(path.URL()), e.dest()
	in := e.receiver(d, consumerSpec(dest))
	probe := func(patience time.Duration) error {
		prober, ok := in.consumer.(driver.Prober)
		require.True(e, ok, "a consumer is a driver.Prober, and another is not")
		return e.bounded(patience+grace, "Probe", func() error { return prober.Probe(e.within(patience)) })
	}
	require.NoError(e, probe(e.cfg.Timeout), "Probe of a broker that is alive")
	e.producer(d, producerSpec(dest)).sendAll(base, 20)
	require.NoError(e, probe(e.cfg.Timeout), "Probe of a broker that is alive")
	in.expect(base, 20)
	e.broken = true
	path.Freeze()
	require.Error(e, probe(500*time.Millisecond), "Probe of a broker that does not answer")
}

// testCounting: counters have names, keep their order, and never decrease.
func testCounting(e *env) {
	d := e.open()
	out, in := e.pair(d, nil)
	var counting []driver.Counting
	for _, party := range []any{out.producer, in.consumer} {
		if c, ok := party.(driver.Counting); ok {
			counting = append(counting, c)
		}
	}
	read := func() (list []driver.Counter) {
		for _, c := range counting {
			list = append(list, c.Counters()...)
		}
		return list
	}
	before := read()
	out.sendAll(base, 100)
	in.expect(base, 100)
	middle := read()
	out.close()
	in.close()
	for _, now := range [][]driver.Counter{middle, read()} {
		require.Len(e, now, len(before), "counters before and after messages were sent")
		for i, c := range now {
			require.Equal(e, before[i].Name, c.Name, "the order of counters changed")
			require.NotEmptyf(e, c.Help, "the counter %s has no help text", c.Name)
			require.Equal(e, strings.ToLower(strings.ReplaceAll(c.Name, " ", "-")), c.Name,
				"the name of a counter: lower case, words joined by hyphens")
			require.GreaterOrEqualf(e, c.Value, before[i].Value, "the counter %s went back", c.Name)
		}
		before = now
	}
}

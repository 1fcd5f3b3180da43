package drivertest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// base is the name of a test's first message.
const base int64 = 1_700_000_000_000_000

func testFactory(e *env) {
	f := e.cfg.Factory
	require.NotEmpty(e, f.Name, "Name")
	require.Equal(e, strings.ToLower(f.Name), f.Name, "Name is typed by users: lower case")
	require.NotEmpty(e, f.Title, "Title")
	require.NotEmpty(e, f.Schemes, "Schemes")
	require.Truef(e, strings.HasPrefix(f.DefaultURL, f.Schemes[0]+"://"),
		"DefaultURL %q does not begin with the first of Schemes, %q", f.DefaultURL, f.Schemes[0])
	require.True(e, f.Capabilities.Queue.Exists || f.Capabilities.Topic.Exists, "Capabilities: neither queues nor topics")

	fresh := driver.Describe(f.NewOptions())
	for _, o := range fresh {
		require.NotEmptyf(e, o.Help, "option %s has no help text", o.Name)
		if len(o.Enum) > 0 {
			require.Containsf(e, o.Enum, o.Default, "the default of option %s is not among its values", o.Name)
		}
	}
	set := e.options()
	require.Error(e, driver.SetOptions(set, []string{"no-such-option=1"}))
	if len(fresh) > 0 {
		require.NotSame(e, set, f.NewOptions(), "NewOptions returned the same struct twice")
	}
	require.Equal(e, fresh, driver.Describe(f.NewOptions()), "options that were set in one struct appeared in the next")
	if f.Check != nil {
		require.NoError(e, f.Check(e.openOptions(e.cfg.URL)), "Factory.Check of Config.URL")
	}
}

// testDone sends n messages through so many slots, slots being used again as soon as Done was called.
func testDone(e *env, slots, n int) {
	d, dest := e.open(), e.queue()
	in := e.receiver(d, consumerSpec(dest))
	spec := producerSpec(dest)
	spec.MaxPending = slots
	out := e.producer(d, spec)
	out.sendAll(base, n)
	in.expect(base, n)
	out.close()
	sent, ended, _ := out.totals()
	require.Equal(e, n, sent)
	require.Equal(e, n, ended)
}

func testTime(e *env) {
	d, dest := e.open(), e.queue()
	out, in := e.producer(d, producerSpec(dest)), e.receiver(d, consumerSpec(dest))
	for i, stamp := range []int64{1, time.Now().UnixMicro(), 1<<31 + 1, 1<<53 + 1, math.MaxInt64 / 2, math.MaxInt64} {
		require.NoError(e, out.trySend(e.soon(), stamp, payload(10)))
		out.accepted()
		e.await("receive", in.changed, func() error { return atLeast(in.count(), i+1) })
		require.Equal(e, stamp, in.stamps()[i], "the time property changed on its way")
	}
}

// testID sends IDs whose parts are all different, so that a driver that mixes them up shows, and a message without one.
func testID(e *env) {
	d, dest := e.open(), e.queue()
	out, in := e.producer(d, producerSpec(dest)), e.receiver(d, consumerSpec(dest))
	for i, id := range []driver.ID{
		{Run: 1},
		{Run: 1, Producer: 2, Number: 3, Sum: 4},
		{Run: 128, Producer: 255, Number: 256, Sum: 65536},
		{Run: 1<<53 + 1, Producer: 1<<31 + 1, Number: 1<<32 + 3, Sum: 1<<62 + 5},
		{},
		{Run: math.MaxInt64, Producer: math.MaxInt64 - 1, Number: math.MaxInt64 - 2, Sum: math.MaxInt64 - 3},
		{},
	} {
		require.NoError(e, out.trySendID(e.soon(), id, base+int64(i), payload(10)))
		out.accepted()
		e.await("receive", in.changed, func() error { return atLeast(in.count(), i+1) })
		got := in.messages()[i]
		require.Equal(e, base+int64(i), got.stamp)
		require.Equalf(e, id, got.id, "the ID of message %d changed on its way", i)
	}
}

func testBodies(e *env) {
	d, dest := e.open(), e.queue()
	sizes := slices.DeleteFunc([]int{0, 1, 255, 256, 1024, 65536, 1 << 20, 10 << 20}, func(size int) bool {
		return size < e.cfg.MinBody || size > e.cfg.MaxBody
	})
	spec := producerSpec(dest)
	spec.Variants = variants(sizes...)
	out, in := e.producer(d, spec), e.receiver(d, consumerSpec(dest))
	n := 0
	for _, size := range sizes {
		out.send(base+int64(n), 1, payload(size))
		out.accepted()
		n++
		e.await("receive a body of "+driverSize(size), in.changed, func() error { return atLeast(in.count(), n) })
		got := in.messages()[n-1]
		require.Equal(e, base+int64(n-1), got.stamp)
		requireBody(e, got, size)
	}
	in.expect(base, n)
}

// testVariants sends messages of many kinds through one producer, in no order.
func testVariants(e *env) {
	const n, size = driver.MaxVariants, 1000
	d, dest := e.open(), e.queue()
	spec := producerSpec(dest)
	spec.Variants = nil
	for i := range n {
		spec.Variants = append(spec.Variants, variants(size+i)...)
	}
	out := e.producer(d, spec)
	in := e.receiver(d, consumerSpec(dest))
	for i := range n {
		out.send(base+int64(i), 1, payload(size+i*7%n))
	}
	out.accepted()
	in.expect(base, n)
	for _, got := range in.messages() {
		requireBody(e, got, size+int(got.stamp-base)*7%n)
	}
}

func testProperties(e *env) {
	d, dest := e.open(), e.queue()
	spec := producerSpec(dest)
	properties := []driver.Property{{Key: "color", Value: "red"}, {Key: "empty", Value: ""}, {Key: "text", Value: e.cfg.PropertyText}}
	each(spec.Variants, func(v *driver.Variant) { v.Properties = properties })
	out, in := e.producer(d, spec), e.receiver(d, consumerSpec(dest))
	out.sendAll(base, 10)
	in.expect(base, 10)
}

func testPersistent(e *env) {
	d, dest := e.open(), e.queue()
	spec := producerSpec(dest)
	spec.Persistent = true
	out, in := e.producer(d, spec), e.receiver(d, consumerSpec(dest))
	out.sendAll(base, 100)
	in.expect(base, 100)
}

func testPriority(e *env) {
	d, dest := e.open(), e.queue()
	in := e.receiver(d, consumerSpec(dest))
	for i, priority := range []int{0, 4, 9} {
		spec := producerSpec(dest)
		each(spec.Variants, func(v *driver.Variant) { v.Priority = priority })
		e.producer(d, spec).sendAll(base+int64(i)*10, 10)
	}
	in.expect(base, 30)
}

func testGroup(e *env) {
	d, dest := e.open(), e.queue()
	a := e.receiver(d, consumerSpec(dest))
	b := e.receiver(d, consumerSpec(dest))
	spec := producerSpec(dest)
	each(spec.Variants, func(v *driver.Variant) { v.Group = "group-1" })
	e.producer(d, spec).sendAll(base, 50)
	e.expectTogether(base, 50, a, b)
	require.Truef(e, a.count() == 0 || b.count() == 0,
		"the messages of one group went to two consumers: %d and %d", a.count(), b.count())
}

func testTTL(e *env) {
	d, mortal, lasting := e.open(), e.queue(), e.queue()
	spec := producerSpec(mortal)
	spec.TTL = e.cfg.TTL
	e.producer(d, spec).sendAll(base, 10)
	spec.Destination, spec.TTL = lasting, time.Hour
	e.producer(d, spec).sendAll(base, 10)
	e.arrived(d)
	pause(e.cfg.TTL + e.cfg.Quiet)
	e.producer(d, producerSpec(mortal)).sendAll(base+100, 1)
	e.receiver(d, consumerSpec(lasting)).expect(base, 10)
	in := e.receiver(d, consumerSpec(mortal))
	in.expect(base+100, 1)
	in.nothing(1)
}

// arrived waits until the broker has what was sent before on the connection of producers, where sends do not say so.
func (e *env) arrived(d driver.Driver) {
	e.Helper()
	if e.cfg.AtMostOnce {
		dest := e.queue()
		e.producer(d, producerSpec(dest)).sendAll(base, 1)
		e.receiver(d, consumerSpec(dest)).expect(base, 1)
	}
}

func testTransactedSend(e *env) {
	d, dest := e.open(), e.queue()
	spec := producerSpec(dest)
	spec.CommitInterval = 10
	out, in := e.producer(d, spec), e.receiver(d, consumerSpec(dest))
	out.sendAll(base, 100)
	in.expect(base, 100)
}

func testTransactedReceive(e *env) {
	d, dest := e.open(), e.queue()
	e.producer(d, producerSpec(dest)).sendAll(base, 20)
	spec := consumerSpec(dest)
	spec.TransactionSize = 1
	in := e.receiver(d, spec)
	in.expect(base, 20)
	in.close()
	e.receiver(d, consumerSpec(dest)).nothing(0)
}

func testCounters(e *env) {
	const n = 500
	d, dest := e.open(), e.queue()
	out, in := e.producer(d, producerSpec(dest)), e.receiver(d, consumerSpec(dest))
	out.sendAll(base, n)
	in.expect(base, n)
	out.close()
	in.close()
	e.await("the broker's counters", nil, func() error {
		added, acknowledged := e.cfg.QueueCounters(e, dest)
		if added != n || acknowledged != n {
			return fmt.Errorf("the broker counts %d added and %d acknowledged instead of %d", added, acknowledged, n)
		}
		return nil
	})
}

package drivertest

import (
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func testQueueWaits(e *env) {
	d, dest := e.open(), e.dest()
	out := e.producer(d, producerSpec(dest))
	out.sendAll(base, 200)
	out.close()
	in := e.receiver(d, consumerSpec(dest))
	in.expect(base, 200)
	in.nothing(200)
}

// several opens n consumers of a destination, each on a connection of its own, except that the last shares the
// connection of the first.
func (e *env) several(d driver.Driver, dest driver.Destination, n int) []*inbox {
	e.Helper()
	var inboxes []*inbox
	shared := connection("c0")
	for i := range n {
		spec := consumerSpec(dest)
		spec.Connection, spec.Name = connection("c"+strconv.Itoa(i)), "consumer-"+strconv.Itoa(i)
		if i == 0 || i == n-1 {
			spec.Connection = shared
		}
		inboxes = append(inboxes, e.receiver(d, spec))
	}
	return inboxes
}

func testQueueCompeting(e *env) {
	d, dest := e.open(), e.dest()
	inboxes := e.several(d, dest, 3)
	e.producer(d, producerSpec(dest)).sendAll(base, 600)
	e.expectAtRest(base, 600, inboxes...)
}

func testFanOut(e *env) {
	d, dest := e.open(), e.dest()
	inboxes := e.several(d, dest, 3)
	e.producer(d, producerSpec(dest)).sendAll(base, 200)
	for _, in := range inboxes {
		in.expect(base, 200)
	}
	for _, in := range inboxes {
		in.nothing(200)
	}
}

// testTopicNotBefore: a subscription gets none of the messages sent before it.
func testTopicNotBefore(e *env) {
	d, dest := e.open(), e.dest()
	out := e.producer(d, producerSpec(dest))
	first := e.receiver(d, consumerSpec(dest))
	out.sendAll(base, 10)
	first.expect(base, 10)
	second := e.receiver(e.open(), consumerSpec(dest))
	second.nothing(0)
	out.sendAll(base+10, 10)
	second.expect(base+10, 10)
	e.expectAtRest(base, 20, first)
	first.close()
	e.expectAtRest(base+10, 10, second)
	second.close()

	out.send(base+20, 10) // to nobody: some brokers do not accept that
	require.NoError(e, out.wait(e.cfg.Timeout))
	e.arrived(d)
	third := e.receiver(d, consumerSpec(dest))
	third.nothing(0)
	out.send(base+30, 10)
	e.expectAtRest(base+30, 10, third)
}

// testLeave: a closed consumer receives nothing, although another consumer still uses its connection.
func testLeave(e *env) {
	const n, size, slack, woken = 50, 16 << 10, 10, 20
	path := e.cfg.Path(e)
	d := e.openURL(path.URL())
	dest, beside := e.dest(), e.dest()
	leaver := e.receiver(d, consumerSpec(dest))
	stayer := consumerSpec(beside)
	stayer.Name = "consumer-2"
	other := e.receiver(d, stayer)

	direct := e.open()
	spec := producerSpec(dest)
	spec.Variants = variants(size)
	out := e.producer(direct, spec)
	toOther := e.producer(direct, producerSpec(beside))
	out.sendAll(base, 10)
	leaver.expect(base, 10)
	leaver.close()

	heir := e.receiver(direct, consumerSpec(dest))
	out.sendAll(base+10, woken) // the broker answers a pull that waited when the consumer was closed
	heir.expect(base+10, woken)
	before := path.Received()
	out.sendAll(base+10+woken, n)
	heir.expect(base+10, woken+n)
	toOther.sendAll(base, 1)
	other.expect(base, 1)
	e.quiet()
	require.LessOrEqualf(e, path.Received()-before, int64(slack*size),
		"the broker goes on sending to a consumer that was closed: bytes of %d messages of %d bytes", n, size)
	if e.kind == driver.Topic && e.cfg.Subscriptions != nil {
		e.await("subscriptions of "+dest.String()+" with one consumer left", nil, func() error {
			return wantCount("subscriptions", e.cfg.Subscriptions(e, dest), 1)
		})
	}
	heir.expect(base+10, woken+n)
}

func testSelector(e *env) {
	d, dest := e.open(), e.dest()
	all := func() *inbox { return e.receiver(d, consumerSpec(dest)) }
	var plain *inbox
	if e.kind == driver.Topic {
		plain = all()
	}
	spec := consumerSpec(dest)
	spec.Selector = e.cfg.Selector("color", "red")
	in := e.receiver(d, spec)
	send := func(color string, first int64) {
		spec := producerSpec(dest)
		if color != "" {
			each(spec.Variants, func(v *driver.Variant) { v.Properties = []driver.Property{{Key: "color", Value: color}} })
		}
		e.producer(d, spec).sendAll(first, 10)
	}
	send("blue", base+10)
	send("", base+20)
	send("red", base)
	in.expect(base, 10)
	in.nothing(10)
	in.close()
	switch {
	case e.kind == driver.Topic:
		plain.expect(base, 30)
	case e.cfg.Log:
		all().expect(base, 30)
	default:
		all().expect(base+10, 20)
	}
}

func testDurableKept(e *env)    { testDurable(e, true) }
func testDurableRemoved(e *env) { testDurable(e, false) }

// testDurable: messages sent while the subscriber is away wait for it if it left with KeepSubscription, and do not
// otherwise.
func testDurable(e *env, keep bool) {
	dest := e.dest()
	spec := e.keptSpec(dest)
	spec.KeepSubscription = keep
	direct, first := e.open(), e.open()
	out := e.producer(direct, producerSpec(dest))
	in := e.receiver(first, spec)
	out.sendAll(base, 10)
	in.expect(base, 10)
	in.close()
	e.closes(e.closing(), "Driver.Close", first.Close)
	out.sendAll(base+10, 10)
	e.arrived(direct) // before the next subscription

	again := e.receiver(e.open(), last(spec))
	if keep {
		again.expect(base+10, 10)
	}
	out.sendAll(base+20, 10)
	if keep {
		again.expect(base+10, 20)
		return
	}
	again.expect(base+20, 10)
	again.nothing(10)
}

// testShared: the consumers of a shared subscription together get each message once, and other subscriptions get all. A
// closed consumer no longer gets a share.
func testShared(e *env) {
	const n, credit = 200, 10
	d, dest := e.open(), e.dest()
	spec := e.sharedSpec(dest)
	other := consumerSpec(dest)
	other.Connection = connection("other")

	held := e.has(Credit) && !e.cfg.SettledReceive
	if held {
		spec.Credit = credit
	}
	a := e.consumer(d, spec)
	spec.Name, spec.Credit = "consumer-2", 0
	b := e.consumer(d, spec)
	full := e.gate()
	if held { // so that b gets the rest
		a.onMsg = func(int) { full.wait() }
	}
	a.run()
	b.run()
	all := e.receiver(d, other)
	out := e.producer(d, producerSpec(dest))
	out.sendAll(base, n)
	all.expect(base, n)
	if held {
		b.awaitCount(n-credit, "receive on the one consumer of a shared subscription that is not busy")
	}
	full.release()
	e.expectAtRest(base, n, a, b)
	a.close()
	out.sendAll(base+n, n)
	e.expectTogether(base, 2*n, a, b)
}

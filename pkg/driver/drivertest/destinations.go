package drivertest

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func atLeast(got, want int) error {
	if got < want {
		return fmt.Errorf("%d of %d came", got, want)
	}
	return nil
}

func driverSize(n int) string { return strconv.Itoa(n) + " bytes" }

func requireBody(e *env, got received, size int) {
	e.Helper()
	require.Lenf(e, got.body, size, "the body of message %d has another length", got.stamp-base)
	require.Truef(e, string(got.body) == string(payload(size)), "the body of message %d, %d bytes, was damaged", got.stamp-base, size)
}

// expectTogether waits until the inboxes have received first, first+1, ..., n of them, each in one inbox only.
func (e *env) expectTogether(first int64, n int, inboxes ...*inbox) {
	e.Helper()
	all := func() (stamps []int64) {
		for _, in := range inboxes {
			stamps = append(stamps, in.stamps()...)
		}
		return stamps
	}
	e.await("receive on all consumers together", nil, func() error {
		if stamps := all(); len(stamps) < n {
			return compare(stamps, first, n)
		}
		return nil
	})
	require.NoError(e, compare(all(), first, n))
}

func testQueueWaits(e *env) {
	d, dest := e.open(), e.queue()
	out := e.producer(d, producerSpec(dest))
	out.sendAll(base, 200)
	out.close()
	in := e.receiver(d, consumerSpec(dest))
	in.expect(base, 200)
	in.nothing(200)
}

func testQueueCompeting(e *env) {
	d, dest := e.open(), e.queue()
	var inboxes []*inbox
	for i := range 3 {
		spec := consumerSpec(dest)
		spec.Connection, spec.Name = connection("c"+strconv.Itoa(i)), "consumer-"+strconv.Itoa(i)
		inboxes = append(inboxes, e.receiver(d, spec))
	}
	e.producer(d, producerSpec(dest)).sendAll(base, 600)
	e.expectTogether(base, 600, inboxes...)
}

// testSubscribed sends when Consumer has returned but before Run is called.
func testSubscribed(e *env) {
	kinds := []driver.Kind{driver.Queue}
	if works, _ := e.cfg.has(Topics); works {
		kinds = append(kinds, driver.Topic)
	}
	d := e.open()
	for _, kind := range kinds {
		for range 5 {
			dest := e.cfg.NewDestination(e, kind)
			out := e.producer(d, producerSpec(dest))
			in := e.consumer(d, consumerSpec(dest))
			out.sendAll(base, 20)
			in.run().expect(base, 20)
			in.close()
			out.close()
		}
	}
}

func testFanOut(e *env) {
	d, dest := e.open(), e.topic()
	var inboxes []*inbox
	for i := range 3 {
		spec := consumerSpec(dest)
		spec.Connection, spec.Name = connection("c"+strconv.Itoa(i%2)), "consumer-"+strconv.Itoa(i)
		inboxes = append(inboxes, e.receiver(d, spec))
	}
	e.producer(d, producerSpec(dest)).sendAll(base, 200)
	for _, in := range inboxes {
		in.expect(base, 200)
	}
	for _, in := range inboxes {
		in.nothing(200)
	}
}

// testTopicNotBefore: a subscription gets nothing of what was sent before it.
func testTopicNotBefore(e *env) {
	d, dest := e.open(), e.topic()
	out := e.producer(d, producerSpec(dest))
	first := e.receiver(d, consumerSpec(dest))
	out.sendAll(base, 10)
	first.expect(base, 10)
	second := e.receiver(d, consumerSpec(dest))
	out.sendAll(base+10, 10)
	second.expect(base+10, 10)
	first.expect(base, 20)
}

func testSelector(e *env) {
	d, dest := e.open(), e.queue()
	spec := consumerSpec(dest)
	spec.Selector = e.cfg.Selector
	in := e.receiver(d, spec)
	send := func(color string, first int64) {
		spec := producerSpec(dest)
		if color != "" {
			each(spec.Variants, func(v *driver.Variant) { v.Properties = []driver.Property{{Key: "color", Value: color}} })
		}
		e.producer(d, spec).sendAll(first, 10)
	}
	send("blue", base+100)
	send("", base+110)
	send("red", base)
	in.expect(base, 10)
	in.nothing(10)
	in.close()
	rest := e.receiver(d, consumerSpec(dest))
	if e.cfg.Log {
		e.await("receive all", rest.changed, func() error { return atLeast(rest.count(), 30) })
		rest.nothing(30)
		return
	}
	rest.expect(base+100, 20)
}

// durableSpec is a durable subscription of its own.
func (e *env) durableSpec(dest driver.Destination, keep bool) driver.ConsumerSpec {
	spec := consumerSpec(dest)
	spec.Connection.ClientID = unique(e.cfg.ClientID)
	spec.Subscription, spec.Durable, spec.KeepSubscription = "subscription-1", true, keep
	return spec
}

// testDurable: what is sent while nobody receives waits for the subscriber if it left with KeepSubscription, and does
// not otherwise.
func testDurable(e *env, keep bool) {
	dest := e.topic()
	spec := e.durableSpec(dest, keep)
	out := e.producer(e.open(), producerSpec(dest))

	first := e.open()
	in := e.receiver(first, spec)
	out.sendAll(base, 10)
	in.expect(base, 10)
	in.close()
	e.closes(e.closing(), "Driver.Close", first.Close)
	watch := e.watch(dest)
	out.sendAll(base+10, 10)
	watch(base+10, 10) // so that they do not come after the next subscription

	spec.KeepSubscription = false
	again := e.receiver(e.open(), spec)
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

// watch returns a function that waits until the broker has messages of a topic, where their sends do not say so.
func (e *env) watch(dest driver.Destination) func(first int64, n int) {
	if !e.cfg.AtMostOnce {
		return func(int64, int) {}
	}
	return e.receiver(e.open(), consumerSpec(dest)).expect
}

func testShared(e *env) {
	const n, credit = 200, 10
	d, dest := e.open(), e.topic()
	spec := consumerSpec(dest)
	spec.Connection.ClientID = unique(e.cfg.ClientID)
	spec.Subscription, spec.Shared = "shared-1", true
	other := consumerSpec(dest)
	other.Connection = connection("other")

	held, _ := e.cfg.has(Credit)
	held = held && !e.cfg.SettledReceive
	if held {
		spec.Credit = credit
	}
	a := e.consumer(d, spec)
	spec.Name, spec.Credit = "consumer-2", 0
	b := e.consumer(d, spec)
	if held { // so that b gets the rest
		a.onMsg = e.holdUntil(func() bool { return b.count() >= n-credit })
	}
	a.run()
	b.run()
	all := e.receiver(d, other)
	e.producer(d, producerSpec(dest)).sendAll(base, n)
	all.expect(base, n)
	e.expectTogether(base, n, a, b)
	require.True(e, !held || b.count() >= n-credit, "a shared subscription did not spread its messages")
}

// holdUntil returns a function that waits within deliver until ready, at most for the timeout.
func (e *env) holdUntil(ready func() bool) func(int) {
	ctx := e.soon()
	var once sync.Once
	return func(int) {
		once.Do(func() { waitUntil(ctx, ready) })
	}
}

// testCredit: a consumer that does not return from deliver keeps at most its credit from one that comes later.
func testCredit(e *env) {
	const n, credit = 200, 10
	d, dest := e.open(), e.queue()
	e.producer(d, producerSpec(dest)).sendAll(base, n)
	spec := consumerSpec(dest)
	spec.Credit = credit
	slow := e.consumer(d, spec)
	spec = consumerSpec(dest)
	spec.Connection, spec.Name = connection("c2"), "consumer-2"
	release := make(chan struct{})
	slow.onMsg = func(n int) {
		if n == 1 {
			<-release
		}
	}
	var once sync.Once
	let := func() { once.Do(func() { close(release) }) }
	e.Cleanup(let)
	slow.run()
	e.await("receive a first message", slow.changed, func() error { return atLeast(slow.count(), 1) })
	pause(e.cfg.Quiet) // the broker sends ahead what it may

	fast := e.receiver(d, spec)
	e.await("receive on a consumer beside one that is busy and has a credit of "+strconv.Itoa(credit), fast.changed, func() error {
		return atLeast(fast.count(), n-credit)
	})
	let()
	e.expectTogether(base, n, slow, fast)
}

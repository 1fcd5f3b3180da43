package drivertest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// testSubscribed sends when Consumer has returned but before Run is called.
func testSubscribed(e *env) {
	d := e.open()
	for range 5 {
		dest := e.dest()
		out := e.producer(d, producerSpec(dest))
		in := e.consumer(d, consumerSpec(dest))
		out.sendAll(base, 20)
		in.run().expect(base, 20)
		in.close()
		out.close()
	}
	e.consumer(d, consumerSpec(e.dest())).close() // without Run
}

// testRunEnds: Run returns nil soon after its context ends, with and without messages coming in.
func testRunEnds(e *env) {
	d, dest := e.open(), e.dest()
	e.receiver(d, consumerSpec(dest)).stop()

	in := e.receiver(d, consumerSpec(dest))
	out := e.producer(d, producerSpec(dest))
	ctx, stop := context.WithCancel(e.soon())
	sending := make(chan error, 1)
	go func() {
		for i := base; ; i++ {
			if err := out.trySend(ctx, i); err != nil {
				sending <- err
				return
			}
		}
	}()
	in.awaitCount(100, "receive")
	begin := time.Now()
	in.stop()
	require.Less(e, time.Since(begin), grace, "Run went on after its context had ended")
	stop()
	err := e.bounded(e.cfg.Timeout, "Send, after the end of its context,", func() error { return <-sending })
	require.ErrorIs(e, err, context.Canceled)
	require.NoError(e, out.wait(e.cfg.Timeout))
	e.quiet() // time in which nothing more may be delivered
	in.close()

	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	late := e.consumer(d, consumerSpec(dest))
	err = e.bounded(grace, "Run with an ended context",
		func() error { return late.consumer.Run(ended, late.deliver) })
	require.NoError(e, err, "Run with an ended context")
}

// testRunStops: when the context ends during a delivery, no other message is delivered.
func testRunStops(e *env) {
	const n, last = 200, 20
	d, dest := e.open(), e.dest()
	in := e.consumer(d, consumerSpec(dest))
	out := e.producer(d, producerSpec(dest))
	out.sendAll(base, n)
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	delivered := 0
	err := e.bounded(e.cfg.Timeout, "Run, whose context is ended by a delivery,", func() error {
		return in.consumer.Run(ctx, func(*driver.Delivery) driver.Verdict {
			if delivered++; delivered == last {
				stop()
			}
			return driver.Accept
		})
	})
	require.NoError(e, err)
	require.Equal(e, last, delivered, "messages were delivered after the end of the context")
}

// testMaxBody: a body of the largest size comes, and a body of one byte more ends the consumer.
func testMaxBody(e *env) {
	const limit = 32 << 10
	opts := e.openOptions(e.cfg.URL)
	opts.MaxBody = limit
	dest := e.dest()
	in := e.receiver(e.openWith(opts), consumerSpec(dest))
	spec := producerSpec(dest)
	spec.Variants = variants(limit, limit+1)
	out := e.producer(e.open(), spec)
	send := func(i int64) {
		out.sendEach(1, func(int) driver.Message { return driver.Message{Time: base + i, Variant: int(i)} })
		out.accepted()
	}
	send(0)
	in.expect(base, 1)
	requireBody(e, in.messages()[0], limit)
	e.broken = true // the driver may end the connection
	send(1)
	err := in.fails()
	require.Error(e, err, "Run returned nil although a body was larger than MaxBody")
	require.Equalf(e, driver.ClassTooLarge, driver.ClassOf(err), "class of the error of Run: %v", err)
	require.Equal(e, 1, in.count(), "messages that were delivered, the last of which is larger than MaxBody")
}

// testUnsettled: messages that were only prefetched by a consumer go back when it closes; delivered messages were
// settled and do not.
func testUnsettled(e *env) {
	const n = 100
	d, dest := e.open(), e.dest()
	spec := e.keptSpec(dest)
	if e.has(Credit) {
		spec.Credit = 20
	}
	e.subscribe(spec)
	e.producer(d, producerSpec(dest)).sendAll(base, n)
	first := e.consumer(d, spec)
	got := make(chan struct{})
	first.onMsg = func(i int) {
		if i == 3 {
			first.cancel()
			close(got)
		}
	}
	first.run()
	require.NoError(e, e.bounded(e.cfg.Timeout, "receiving 3 messages", func() error { <-got; return nil }))
	first.close()
	require.LessOrEqual(e, first.count(), n/2, "Run went on after its context had ended")
	second := e.again(d, last(spec))
	e.expectAtRest(base, n, first, second)
}

// cutDelivery receives over a path that is cut while the last of the given number of messages is being delivered. It
// returns that consumer, and a second consumer for the rest.
func (e *env) cutDelivery(n, delivered int, change func(*driver.ConsumerSpec), ready func()) (first, second *inbox) {
	e.Helper()
	path := e.cfg.Path(e)
	through, direct := e.openURL(path.URL()), e.open()
	dest := e.dest()
	spec := e.keptSpec(dest)
	if e.has(Credit) {
		spec.Credit = 20
	}
	if change != nil {
		change(&spec)
	}
	e.subscribe(spec)
	e.producer(direct, producerSpec(dest)).sendAll(base, n)

	first = e.consumer(through, spec)
	done, delivering := e.gate(), e.gate()
	first.onMsg = func(i int) {
		if i == delivered {
			delivering.release()
			done.wait()
		}
	}
	first.run()
	first.awaitCount(delivered, "receive")
	delivering.wait()
	e.quiet() // time for what was settled to reach the broker, and for what was settled too early
	if ready != nil {
		ready()
	}
	e.broken = true
	path.Cut()
	done.release()
	if reportsLoss(e.cfg, e.kind) {
		first.lost()
	}
	first.close() // messages that had arrived before the cut may have been delivered
	spec.TransactionSize, spec.Commits = 0, nil
	return first, e.again(direct, last(spec))
}

// rest waits until second has all messages except those of first that may have been settled; it may have some of these
// too.
func (e *env) rest(n int, first, second *inbox, settled func(at int) bool) {
	e.Helper()
	free := map[int64]bool{}
	for i, m := range first.messages() {
		free[m.stamp] = settled(i)
	}
	e.await("receive what was not settled before the connection was cut", second.changed, func() error {
		came := map[int64]bool{}
		for _, stamp := range second.stamps() {
			came[stamp] = true
		}
		for stamp := base; stamp < base+int64(n); stamp++ {
			mayBeGone, delivered := free[stamp]
			switch {
			case came[stamp] || mayBeGone:
			case delivered:
				return fmt.Errorf("message %d, whose delivery had not ended, did not come again: it was settled too early",
					stamp-base)
			default:
				return fmt.Errorf("message %d, which was not delivered, was lost", stamp-base)
			}
		}
		return nil
	})
	e.quiet()
	require.NoError(e, compareSome(second.stamps(), func(s int64) bool { return s >= base && s < base+int64(n) }))
}

// testAfterVerdict: a message is settled when deliver has returned, and not before. If the connection is cut during the
// delivery, the message comes again.
func testAfterVerdict(e *env) {
	const n, delivered = 40, 5
	first, second := e.cutDelivery(n, delivered, nil, nil)
	e.rest(n, first, second, func(at int) bool { return at < delivered-1 })
}

// testRedelivered: messages that come again after a cut are marked as redelivered, and messages that come for the first
// time are not.
func testRedelivered(e *env) {
	const n, delivered = 40, 5
	first, second := e.cutDelivery(n, delivered, nil, nil)
	e.rest(n, first, second, func(at int) bool { return at < delivered-1 })
	before := map[int64]bool{}
	for _, m := range first.messages() {
		require.Falsef(e, m.redelivered, "message %d came with Redelivered set, the first time", m.stamp-base)
		before[m.stamp] = true
	}
	for _, m := range second.messages() {
		require.Truef(e, m.redelivered || !before[m.stamp], "message %d came again without Redelivered", m.stamp-base)
	}
}

// testReject: a rejected message does not come again and counts as rejected at the broker, and the others are settled.
func testReject(e *env) {
	var before int64
	counted := e.cfg.Rejected != nil && keeps(e.cfg, e.kind) // the counts of a subscription may end with it
	if counted {
		before = e.cfg.Rejected(e)
	}
	n := e.verdicts(driver.Reject, 1)
	if counted {
		e.await("messages that the broker counts as rejected", nil, func() error {
			return wantCount("messages are rejected at the broker", int(e.cfg.Rejected(e)-before), n)
		})
	}
}

// testRelease: a released message comes again, and the others do not.
func testRelease(e *env) { e.verdicts(driver.Release, 2) }

// verdicts sends messages to a consumer that gives half of them another verdict when they come first. It checks that
// these come so many times, the others once, and none of them to the next consumer. It returns half of their number.
func (e *env) verdicts(failing driver.Verdict, times int) int {
	e.Helper()
	const n = 20
	d, dest := e.open(), e.dest()
	spec := consumerSpec(dest)
	if keeps(e.cfg, e.kind) {
		spec = e.keptSpec(dest)
	}
	next := last(spec)
	spec.Failing = failing
	in := e.consumer(d, spec)
	in.verdict = func(m received, before bool) driver.Verdict {
		if m.stamp%2 == 0 && !before {
			return failing
		}
		return driver.Accept
	}
	in.run()
	e.producer(d, producerSpec(dest)).sendAll(base, n)
	in.awaitCount(n/2+times*n/2, "receive")
	e.quiet()
	in.close()
	came := map[int64]int{}
	for _, stamp := range in.stamps() {
		came[stamp-base]++
	}
	for i := range n {
		want := 1
		if i%2 == 0 {
			want = times
		}
		require.Equalf(e, want, came[int64(i)], "deliveries of message %d; even ones got another verdict", i)
	}
	if keeps(e.cfg, e.kind) {
		other := e.again(d, next)
		e.quiet()
		require.Empty(e, other.stamps(), "messages that were settled came to another consumer")
	}
	return n / 2
}

func wantCount(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("%d %s instead of %d", got, what, want)
	}
	return nil
}

// testCredit: a consumer that does not return from deliver holds at most its credit of messages back from another
// consumer; or, where each consumer gets all, the broker sends it no more than its credit.
func testCredit(e *env) {
	const n, credit, size = 200, 10, 16 << 10
	sharing := e.kind == driver.Queue || e.has(SharedSubscription)
	path := e.cfg.Path(e)
	d, dest := e.openURL(path.URL()), e.dest()
	spec := consumerSpec(dest)
	if sharing {
		spec = e.sharedSpec(dest)
		spec.Connection.ClientID = "" // a client ID is for one connection only
	}
	spec.Credit = credit
	slow := e.consumer(d, spec)
	busy := e.gate()
	slow.onMsg = func(int) { busy.wait() }
	pspec := producerSpec(dest)
	pspec.Variants = variants(size)
	before := path.Received()
	e.producer(e.open(), pspec).sendAll(base, n)
	slow.run()
	slow.awaitCount(1, "receive a first message")
	e.quiet() // the broker sends ahead as much as it may
	if sharing {
		spec.Connection, spec.Name, spec.Credit = connection("c2"), "consumer-2", 0
		fast := e.receiver(d, spec)
		fast.awaitCount(n-credit, fmt.Sprintf("receive on a consumer beside one that is busy and has a credit of %d", credit))
		busy.release()
		e.expectTogether(base, n, slow, fast)
		return
	}
	require.Lessf(e, path.Received()-before, int64(2*credit*size),
		"bytes that were sent ahead to a consumer with a credit of %d messages of %d bytes", credit, size)
	busy.release()
	slow.expect(base, n)
}

//go:build unix

package rocketmq

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// many opens consumers of a destination, a few at a time, each with a connection of its own.
func many(
	t testing.TB, d driver.Driver, dest driver.Destination, n int, change ...func(*driver.ConsumerSpec),
) []driver.Consumer {
	t.Helper()
	consumers, errs := make([]driver.Consumer, n), make([]error, n)
	atOnce := make(chan struct{}, 16)
	var opening sync.WaitGroup
	for i := range n {
		atOnce <- struct{}{}
		opening.Go(func() {
			defer func() { <-atOnce }()
			spec := consumerSpec(dest)
			spec.Connection.Key = fmt.Sprint("c", i)
			for _, f := range change {
				f(&spec)
			}
			consumers[i], errs[i] = d.Consumer(t.Context(), spec)
		})
	}
	opening.Wait()
	for i := range n {
		require.NoError(t, errs[i], "consumer %d", i)
		t.Cleanup(func() { _ = consumers[i].Close(context.Background()) })
	}
	return consumers
}

// runAll lets consumers run until stop, or the test's end.
func runAll(t testing.TB, consumers []driver.Consumer) (g *got, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	g = &got{}
	for i, c := range consumers {
		running.Go(func() {
			if err := c.Run(ctx, g.deliver); err != nil {
				t.Errorf("consumer %d: %v", i, err)
			}
		})
	}
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop) // before the consumers are closed
	return g, stop
}

// rebalanced sums up the changes of queues.
func rebalanced(t testing.TB, consumers []driver.Consumer) (n int) {
	t.Helper()
	for _, c := range consumers {
		n += counter(t, c, "rebalanced")
	}
	return n
}

// TestManyOpenAtOnce: consumers that are opened together own all queues as soon as all are open, take them about once,
// and receive everything.
func TestManyOpenAtOnce(t *testing.T) {
	broker := shared.get(t)
	const members, queues, messages = 60, 100, 3000
	d := openDriver(t, broker.URL(), fmt.Sprint("queues=", queues))
	dest := queueNamed("many-at-once")
	consumers := many(t, d, dest, members)
	owned := 0
	for _, c := range consumers {
		c := c.(*consumer)
		c.shared.mu.Lock()
		require.Zero(t, c.shared.entering)
		require.Empty(t, c.shared.unsettled)
		c.shared.mu.Unlock()
		owned += counter(t, c, "rebalanced")
	}
	require.GreaterOrEqual(t, owned, members, "each has a share")
	require.LessOrEqual(t, owned, 2*members, "which did not pass through many hands")
	send(t, d, producerSpec(dest, 100), messages)
	g, stop := runAll(t, consumers)
	g.wait(t, messages)
	stop()
}

// TestNothingIsTakenOverAfterRun: after Run, a consumer takes no queues of consumers that close before it.
func TestNothingIsTakenOverAfterRun(t *testing.T) {
	broker := shared.get(t)
	const members = 8
	d := openDriver(t, broker.URL(), fmt.Sprint("queues=", members))
	dest := queueNamed("after-run")
	consumers := many(t, d, dest, members)
	g, stop := runAll(t, consumers)
	send(t, d, producerSpec(dest, 100), 100)
	g.wait(t, 100)
	stop()
	left := consumers[members/2:]
	before := rebalanced(t, left)
	for _, c := range consumers[:members/2] {
		require.NoError(t, c.Close(t.Context()))
		<-time.After(lookPause)
	}
	<-time.After(3 * lookPause)
	require.LessOrEqual(t, rebalanced(t, left)-before, len(left), "each gives its only queue back at most")
	late := receive(t, d, consumerSpec(dest)) // takes all queues, as the other consumers close
	send(t, d, producerSpec(dest, 100), 100)
	for _, c := range left {
		require.NoError(t, c.Close(t.Context()))
	}
	late.wait(t, 100)
}

// TestStartIsFixedOnce: of the members of a subscription one asks in each queue where it starts, and none misses a
// message that is sent once all are open.
func TestStartIsFixedOnce(t *testing.T) {
	broker := shared.get(t)
	const members, queues, messages = 20, 100, 1000
	d := openDriver(t, broker.URL(), fmt.Sprint("queues=", queues))
	dest := driver.Destination{Kind: driver.Topic, Name: "start-once"}
	for range 2 { // the messages of the first time are not for the second
		consumers := many(t, d, dest, members, func(spec *driver.ConsumerSpec) {
			spec.Shared, spec.Subscription = true, "s"
		})
		requests := 0
		for _, c := range consumers {
			conn := c.(*consumer).conns[0]
			conn.mu.Lock()
			requests += int(conn.opaque)
			conn.mu.Unlock()
		}
		// Fixing the start takes three requests per queue, taking it over one or two; joining takes a few of each member.
		require.Less(t, requests, 6*queues+20*members)
		send(t, d, producerSpec(dest, 100), messages)
		g, stop := runAll(t, consumers)
		g.wait(t, messages)
		stop()
		group := consumers[0].(*consumer).shared
		require.NotNil(t, group.start.Load())
		for _, c := range consumers {
			require.NoError(t, c.Close(t.Context()))
		}
		require.Nil(t, group.start.Load(), "the group has gone")
	}
}

// TestStartIsAskedAgain: when a consumer leaves, the group may go; and the wait for another's questions has an end.
func TestStartIsAskedAgain(t *testing.T) {
	d := newDriver(transport.Settings[Options]{})
	c := &consumer{membership: membership{group: "g"}, d: d, opts: &Options{}}
	c.shared = d.groupOf(&c.membership)
	r := &route{brokers: []routeBroker{{name: "b", read: 2}}}
	c.route = r
	c.shared.start.Store(r)
	require.NoError(t, c.fixStart(t.Context()), "there is no connection to ask on")
	require.False(t, c.shared.starts(&route{brokers: []routeBroker{{name: "b", read: 3}}}), "the topic got a queue")
	c.shared.part(c)
	require.False(t, c.shared.starts(r))
	c.shared.turn <- struct{}{} // another consumer is asking
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.fixStart(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, driver.ClassTimeout, driver.ClassOf(err))
	require.NotEmpty(t, driver.HintOf(err))
}

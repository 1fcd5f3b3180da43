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
)

// many opens consumers of a destination, a few at a time, each with a connection of its own.
func many(t testing.TB, d driver.Driver, dest driver.Destination, n int) []driver.Consumer {
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
	d := openDriver(t, broker.URL(), fmt.Sprint("queues=", queues), "delete-topic=true")
	dest := queueNamed("many-at-once")
	consumers := many(t, d, dest, members)
	owned := 0
	for _, c := range consumers {
		c := c.(*consumer)
		c.arrivals.mu.Lock()
		require.Zero(t, c.arrivals.entering)
		require.Empty(t, c.arrivals.unsettled)
		c.arrivals.mu.Unlock()
		owned += counter(t, c, "rebalanced")
	}
	require.GreaterOrEqual(t, owned, members, "each has a share")
	require.LessOrEqual(t, owned, 2*members, "which did not pass through many hands")
	send(t, d, producerSpec(dest, 100), messages)
	g := &got{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	for i := range consumers {
		running.Go(func() {
			if err := consumers[i].Run(ctx, g.deliver); err != nil {
				t.Errorf("consumer %d: %v", i, err)
			}
		})
	}
	g.wait(t, messages)
	cancel()
	running.Wait()
}

// TestClosedBeforeTheLastJoined: a consumer that closes while others are still joining holds nobody up.
func TestClosedBeforeTheLastJoined(t *testing.T) {
	broker := shared.get(t)
	d := openDriver(t, broker.URL(), "queues=4", "delete-topic=true")
	dest := queueNamed("closed-early")
	one := many(t, d, dest, 1)[0]
	one.(*consumer).arrivals.enter() // another, on its way
	early := many(t, d, dest, 1)[0]
	require.NoError(t, early.Close(t.Context()))
	one.(*consumer).arrivals.joined(nil, false) // and fails
	last := receive(t, d, consumerSpec(dest))
	running := &got{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- one.Run(ctx, running.deliver) }()
	send(t, d, producerSpec(dest, 100), 100)
	require.Eventually(t, func() bool { return last.count()+running.count() >= 100 }, patience, 5*time.Millisecond)
	require.Positive(t, last.count())
	require.Positive(t, running.count())
	cancel()
	require.NoError(t, <-ended)
}

// TestNothingIsTakenOverAfterRun: of consumers that close one after the other, those that have ended take no queues.
func TestNothingIsTakenOverAfterRun(t *testing.T) {
	broker := shared.get(t)
	const members = 8
	d := openDriver(t, broker.URL(), fmt.Sprint("queues=", members), "delete-topic=true")
	dest := queueNamed("after-run")
	consumers := many(t, d, dest, members)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	g := &got{}
	for _, c := range consumers {
		running.Go(func() {
			if err := c.Run(ctx, g.deliver); err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
	send(t, d, producerSpec(dest, 100), 100)
	g.wait(t, 100)
	cancel()
	running.Wait()
	left := consumers[members/2:]
	before := rebalanced(t, left)
	for _, c := range consumers[:members/2] {
		require.NoError(t, c.Close(t.Context()))
		<-time.After(leavePause)
	}
	<-time.After(3 * leavePause)
	require.LessOrEqual(t, rebalanced(t, left)-before, len(left), "each gives its only queue back at most")
	late := receive(t, d, consumerSpec(dest)) // takes the queues of those that have closed, and then the others
	send(t, d, producerSpec(dest, 100), 100)
	for _, c := range left {
		require.NoError(t, c.Close(t.Context()))
	}
	late.wait(t, 100)
}

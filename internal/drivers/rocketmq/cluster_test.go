//go:build unix

package rocketmq

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// sending is a producer that sends until it is told to stop.
type sending struct {
	p    driver.Producer
	free chan driver.Slot
	o    *outcomes
}

func startSending(t *testing.T, d driver.Driver, dest driver.Destination) *sending {
	t.Helper()
	s := &sending{free: make(chan driver.Slot, 10), o: &outcomes{}}
	for i := range cap(s.free) {
		s.free <- driver.Slot(i)
	}
	var err error
	s.p, err = d.Producer(t.Context(), producerSpec(dest, cap(s.free)), driver.DoneFunc(func(slot driver.Slot, o driver.Outcome) {
		s.o.Done(slot, o)
		s.free <- slot
	}))
	require.NoError(t, err)
	return s
}

// send sends n messages whose times are their numbers.
func (s *sending) send(t *testing.T, from, n int) {
	t.Helper()
	for i := range n {
		select {
		case slot := <-s.free:
			require.NoError(t, s.p.Send(t.Context(), &driver.Message{Slot: slot, Time: int64(from + i)}))
		case <-t.Context().Done():
			require.NoError(t, t.Context().Err())
		}
	}
}

func (s *sending) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, s.p.Close(t.Context()))
}

// storedOn is how many messages of a topic a broker got.
func storedOn(t *testing.T, b *brokertest.RocketMQ, topic string) int64 {
	t.Helper()
	n, err := b.TopicMessages(t.Context(), topic)
	require.NoError(t, err)
	return n
}

func TestClusterOfTwoBrokers(t *testing.T) {
	a := brokertest.StartRocketMQ(t)
	b := brokertest.StartRocketMQ(t, brokertest.WithRocketMQCluster(a, "broker-b"))
	name := unique("cluster")
	dest := queueNamed(name)
	d := openDriver(t, a.URL(), "queues=3", "send-timeout=1m").(*rocketDriver)
	d.refreshEvery = 100 * time.Millisecond
	in := receive(t, d, consumerSpec(dest))
	require.Len(t, d.topics.route(name).brokers, 2, "the topic was created on both")
	out := startSending(t, d, dest)
	out.send(t, 1, 600)
	in.wait(t, 600)
	require.EqualValues(t, 300, storedOn(t, a, name), "round robin over the queues of both")
	require.EqualValues(t, 300, storedOn(t, b, name))

	// The consumer that reads from the dead broker ends, and says why.
	failed := make(chan error, 1)
	go func() { failed <- <-in.ended }()
	b.Kill()
	select {
	case err := <-failed:
		require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err), "%v", err)
		require.NotEmpty(t, driver.HintOf(err))
	case <-time.After(patience):
		require.Fail(t, "Run went on although one of its brokers has gone")
	}
	require.NoError(t, in.c.Close(t.Context()))
	in.c = nil

	// The producer goes on with the other broker; only messages under way are lost.
	out.send(t, 601, 300)
	require.Eventually(t, func() bool { return out.o.total() == 900 }, patience, time.Millisecond)
	accepted := out.o.count(driver.Accepted, driver.ClassNone)
	require.Equal(t, 900, accepted+out.o.count(driver.Unknown, driver.ClassConnectionLost))
	require.GreaterOrEqual(t, accepted, 890)
	// The broker confirms a message before its queue, whose length this is, has it.
	require.Eventually(t, func() bool { return storedOn(t, a, name) == int64(accepted-300) }, patience, 10*time.Millisecond)

	// When the broker is back, its queues are used again.
	require.NoError(t, b.Start(t.Context()))
	before := storedOn(t, b, name)
	from := 901
	require.Eventually(t, func() bool {
		out.send(t, from, 6)
		from += 6
		return storedOn(t, b, name) > before
	}, 2*patience, 20*time.Millisecond)
	out.stop(t)
	require.Equal(t, from-1, out.o.total())
}

// TestQueuesAddedDuringTheRun: those are written to and read from, from their first message on.
func TestQueuesAddedDuringTheRun(t *testing.T) {
	broker := shared.get(t)
	for _, dest := range []driver.Destination{queueNamed(unique("more")), topicNamed(unique("more"))} {
		d := openDriver(t, broker.URL(), "queues=2").(*rocketDriver)
		d.refreshEvery = 50 * time.Millisecond
		in := receive(t, d, consumerSpec(dest))
		out := startSending(t, d, dest)
		out.send(t, 1, 20)
		in.wait(t, 20)
		require.NoError(t, broker.CreateTopic(t.Context(), dest.Name, 5)) // changes it
		queues := func() int { return out.p.(*producer).brokers.Load().queues() }
		require.Eventually(t, func() bool { return queues() == 5 }, patience, 5*time.Millisecond)
		out.send(t, 21, 100)
		in.wait(t, 120)
		out.stop(t)
		c := in.c.(*consumer)
		in.stop(t)
		require.Equal(t, 5, c.at.Load().route.readable())
	}
}

// TestGroupsKeepTheirQueue: messages of a group stay in one queue, whatever queues are added.
func TestGroupsKeepTheirQueue(t *testing.T) {
	broker := shared.get(t)
	d := openDriver(t, broker.URL(), "queues=3", "send=sync").(*rocketDriver)
	d.refreshEvery = 20 * time.Millisecond
	dest := queueNamed(unique("group"))
	in := receive(t, d, consumerSpec(dest))
	spec := producerSpec(dest, 1)
	spec.Variants[0].Group = "g"
	o := &outcomes{}
	p, err := d.Producer(t.Context(), spec, o)
	require.NoError(t, err)
	before := *p.(*producer).brokers.Load()
	require.NoError(t, broker.CreateTopic(t.Context(), dest.Name, 8))
	require.Eventually(t, func() bool {
		r := d.topics.route(dest.Name)
		return r.brokers[0].write == 8
	}, patience, 5*time.Millisecond)
	for i := range 50 {
		require.NoError(t, p.Send(t.Context(), &driver.Message{Time: int64(i + 1)}))
	}
	require.NoError(t, p.Close(t.Context()))
	require.Equal(t, 3, before.queues())
	require.Equal(t, before, p.(*producer).home)
	in.wait(t, 50)
	require.IsIncreasing(t, in.times)
}

func TestFirstNameServerIsDead(t *testing.T) {
	broker := shared.get(t)
	const dead = "127.0.0.1:1"
	for _, first := range []string{dead, dead + "," + dead} {
		d := openDriver(t, "rocketmq://"+first+","+broker.NameServer(), "delete-topic=true")
		dest := queueNamed(unique("ns"))
		in := receive(t, d, consumerSpec(dest))
		send(t, d, producerSpec(dest, 0), 10)
		in.wait(t, 10)
		in.stop(t)
		require.NoError(t, d.Close(context.Background()))
	}
	_, err := openDriver(t, "rocketmq://"+dead+","+dead).Producer(t.Context(), producerSpec(queueNamed("x"), 1), nil)
	require.Equal(t, driver.ClassConnect, driver.ClassOf(err))
	require.Equal(t, 2, strings.Count(err.Error(), "dial tcp "+dead))
}

func TestNamespaces(t *testing.T) {
	broker := shared.get(t)
	name := unique("space")
	dest := queueNamed(name)
	plain, spaced := openDriver(t, broker.URL(), "delete-topic=true"), openDriver(t, broker.URL(), "namespace=ns1", "delete-topic=true")
	inPlain, inSpaced := receive(t, plain, consumerSpec(dest)), receive(t, spaced, consumerSpec(dest))
	send(t, plain, producerSpec(dest, 0), 10)
	send(t, spaced, producerSpec(dest, 0), 20)
	inPlain.wait(t, 10)
	inSpaced.wait(t, 20)
	require.EqualValues(t, 10, storedOn(t, broker, name))
	require.EqualValues(t, 20, storedOn(t, broker, "ns1%"+name))
	require.Contains(t, left(t, broker, name), "group ns1%perfmq-queue-"+name)
	inSpaced.stop(t)
	require.NoError(t, spaced.Close(t.Context()))
	require.Eventually(t, func() bool { return len(left(t, broker, "ns1%")) == 0 }, patience, 100*time.Millisecond)
	require.NotEmpty(t, left(t, broker, name), "what is outside of the namespace stays")
}

// TestPullBatch: a pull brings as many messages as asked for, as far as the broker's own limit allows.
func TestPullBatch(t *testing.T) {
	url := shared.get(t).URL()
	for batch, want := range map[string]int{"pull-batch=1": 96, "pull-batch=10": 10, "pull-batch=32": 3, "pull-batch=1000": 3} {
		d := openDriver(t, url, "queues=1", batch)
		dest := queueNamed(unique("pull"))
		send(t, d, producerSpec(dest, 0), 96)
		// Brokers put what they have stored into its queue a moment later.
		require.Eventually(t, func() bool { return storedOn(t, shared.get(t), dest.Name) == 96 }, patience, time.Millisecond)
		in := receive(t, d, consumerSpec(dest))
		in.wait(t, 96)
		require.Equal(t, want, counter(t, in.c, "pulls"), batch)
		in.stop(t)
	}
}

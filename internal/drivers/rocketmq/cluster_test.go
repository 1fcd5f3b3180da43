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

// sending is a producer that sends until stop is called.
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

// send sends n messages. Their times are their numbers.
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

// storedOn returns the number of messages of a topic that a broker got.
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
	in := receive(t, d, consumerSpec(dest))
	require.Len(t, d.routes[name].brokers, 2, "the topic was created on both")
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

	// The producer continues with the other broker. Only messages in flight are lost.
	out.send(t, 601, 300)
	require.Eventually(t, func() bool { return out.o.total() == 900 }, patience, time.Millisecond)
	accepted := out.o.count(driver.Accepted, driver.ClassNone)
	require.Equal(t, 900, accepted+out.o.count(driver.Unknown, driver.ClassConnectionLost))
	require.GreaterOrEqual(t, accepted, 890)
	// The broker confirms a message before it appears in the length of its queue.
	require.Eventually(t, func() bool { return storedOn(t, a, name) == int64(accepted-300) }, patience, 10*time.Millisecond)
	out.stop(t)
}

func TestFirstNameServerIsDead(t *testing.T) {
	broker := shared.get(t)
	const dead = "127.0.0.1:1"
	for _, first := range []string{dead, dead + "," + dead} {
		d := openDriver(t, "rocketmq://"+first+","+broker.NameServer())
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

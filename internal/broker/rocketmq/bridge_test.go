//go:build unix

package rocketmq_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/pkg/driver"
)

func queueOf(name string) driver.Destination {
	return driver.Destination{Kind: driver.Queue, Name: name}
}

// listen makes a member of a group; it leaves with its connection.
func listen(t *testing.T, b *testBroker, topic string) *client {
	c := dial(t, b)
	c.post(34, 0, []byte(`{"clientID":"c","consumerDataSet":[{"groupName":"g","messageModel":"CLUSTERING","subscriptionDataSet":[{"topic":"`+topic+`","subString":"*","expressionType":"TAG","subVersion":1}]}]}`))
	c.answer() // or what tells that the group has changed
	c.answer()
	return c
}

func TestQueueOfOthersToTopic(t *testing.T) {
	b := start(t, store.Config{}, rocketmq.Options{Queues: 1})
	createTopic(t, b, "Q", 1)
	c := listen(t, b, "Q")
	out := b.store.Destination(queueOf("Q"))
	const n = 500
	for i := range n {
		out.Send(&store.Message{Content: storetest.Content{Data: strconv.Itoa(i)}})
	}
	var list []string
	for len(list) < n {
		list = append(list, c.pull("Q", len(list))...)
	}
	require.Len(t, list, n)
	for i, body := range list {
		require.Equal(t, strconv.Itoa(i), body)
	}
	stats := b.store.Queue("Q").Stats()
	require.EqualValues(t, n, stats.Settled)
	require.Zero(t, stats.Depth)
	// Without members of the group the queue keeps new messages.
	require.NoError(t, c.conn.Close())
	require.Eventually(t, func() bool { return b.store.Queue("Q").Stats().Consumers == 0 }, patience, time.Millisecond)
	out.Send(&store.Message{Content: storetest.Content{Data: "kept"}})
	require.EqualValues(t, 1, b.store.Queue("Q").Stats().Depth)
	c = listen(t, b, "Q")
	require.Equal(t, []string{"kept"}, c.pull("Q", n))
}

func TestTopicToQueueOfOthers(t *testing.T) {
	b := start(t, store.Config{}, rocketmq.Options{Queues: 1})
	queue := b.store.Queue("Q")
	c := listen(t, b, "Q")
	require.Zero(t, c.send("Q", "nobody consumes from the queue"))
	require.Zero(t, queue.Stats().Stored)
	consumer, err := queue.Consume(nil, func() {})
	require.NoError(t, err)
	require.Zero(t, c.send("Q", "for both"))
	got := make([]store.Delivery, 2)
	require.Eventually(t, func() bool { return consumer.Take(got) == 1 }, patience, time.Millisecond)
	require.Equal(t, "for both", string(got[0].Message.Content.Body()))
	require.Len(t, c.pull("Q", 0), 2, "groups get all, once")
	consumer.Close(false)
}

//go:build unix

package brokertest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

var shared brokertest.Shared

func TestMain(m *testing.M) { brokertest.Main(m, &shared) }

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// dial connects as a client with an id of its own.
func dial(t *testing.T, url, containerID string, opts *amqp.ConnOptions) *amqp.Session {
	t.Helper()
	ctx := testContext(t)
	if opts == nil {
		opts = &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()}
	}
	opts.ContainerID = containerID
	conn, err := amqp.Dial(ctx, url, opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	session, err := conn.NewSession(ctx, nil)
	require.NoError(t, err)
	return session
}

func newSender(t *testing.T, s *amqp.Session, queue string) *amqp.Sender {
	t.Helper()
	sender, err := s.NewSender(testContext(t), queue, &amqp.SenderOptions{TargetCapabilities: []string{"queue"}})
	require.NoError(t, err)
	return sender
}

func durable(body string) *amqp.Message {
	m := amqp.NewMessage([]byte(body))
	m.Header = &amqp.MessageHeader{Durable: true}
	return m
}

func TestCountersFollowMessages(t *testing.T) {
	a := shared.Artemis(t)
	ctx := testContext(t)
	const queue = `counters, of="one":\` // names need quoting on the way to JMX

	_, err := a.Queue(ctx, queue)
	require.ErrorIs(t, err, brokertest.ErrNoQueue)

	session := dial(t, a.AMQPURL(), "counting-client", nil)
	sender := newSender(t, session, queue)
	for i := range 10 {
		require.NoError(t, sender.Send(ctx, durable(fmt.Sprint(i)), nil))
	}
	q, err := a.Queue(ctx, queue)
	require.NoError(t, err)
	assert.Equal(t, brokertest.QueueStats{
		Name: queue, Address: queue, RoutingType: "ANYCAST", Durable: true, User: q.User, MaxConsumers: -1,
		MessageCount: 10, DurableMessageCount: 10, MessagesAdded: 10,
	}, q)

	receiver, err := session.NewReceiver(ctx, queue, &amqp.ReceiverOptions{Credit: 4, SourceCapabilities: []string{"queue"}})
	require.NoError(t, err)
	for range 3 {
		m, err := receiver.Receive(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, receiver.AcceptMessage(ctx, m))
	}
	// The broker counts an acknowledgement before it takes the message off.
	q, err = a.WaitQueue(ctx, queue, func(q brokertest.QueueStats) bool { return q.MessagesAcked == 3 && q.MessageCount == 7 })
	require.NoError(t, err)
	assert.EqualValues(t, 1, q.ConsumerCount)
	assert.Positive(t, q.DeliveringCount)

	require.NoError(t, receiver.Close(ctx))
	_, err = a.WaitQueue(ctx, queue, func(q brokertest.QueueStats) bool { return q.ConsumerCount == 0 && q.DeliveringCount == 0 })
	require.NoError(t, err)
	removed, err := a.PurgeQueue(ctx, queue)
	require.NoError(t, err)
	assert.EqualValues(t, 7, removed)
	require.NoError(t, sender.Close(ctx))
	require.NoError(t, a.DeleteQueue(ctx, queue))
	_, err = a.Queue(ctx, queue)
	require.ErrorIs(t, err, brokertest.ErrNoQueue)
}

func TestConsoleListings(t *testing.T) {
	a := shared.Artemis(t)
	ctx := testContext(t)
	session := dial(t, a.AMQPURL(), "listed-client", nil)
	sender := newSender(t, session, "listed")
	require.NoError(t, sender.Send(ctx, durable("x"), nil))
	_, err := session.NewReceiver(ctx, "listed", &amqp.ReceiverOptions{SourceCapabilities: []string{"queue"}})
	require.NoError(t, err)

	connections, err := a.Connections(ctx)
	require.NoError(t, err)
	mine := slices.DeleteFunc(connections, func(c brokertest.Connection) bool { return c.ClientID != "listed-client" })
	require.Len(t, mine, 1)
	assert.Equal(t, "AMQP", mine[0].Protocol)
	assert.EqualValues(t, 1, mine[0].Sessions)

	consumers, err := a.Consumers(ctx)
	require.NoError(t, err)
	i := slices.IndexFunc(consumers, func(c brokertest.Consumer) bool { return c.ClientID == "listed-client" })
	require.GreaterOrEqual(t, i, 0, "%+v", consumers)
	assert.Equal(t, "listed", consumers[i].Queue)
	producers, err := a.Producers(ctx)
	require.NoError(t, err)
	i = slices.IndexFunc(producers, func(p brokertest.ProducerInfo) bool { return p.ClientID == "listed-client" })
	require.GreaterOrEqual(t, i, 0, "%+v", producers)
	assert.EqualValues(t, 1, producers[i].Sent)

	closed, err := a.CloseConnections(ctx, "listed-client")
	require.NoError(t, err)
	assert.Equal(t, 1, closed)
	require.Error(t, sender.Send(ctx, durable("x"), nil))
}

func TestSubscriptionsAndCreatedQueues(t *testing.T) {
	a := shared.Artemis(t)
	ctx := testContext(t)
	session := dial(t, a.AMQPURL(), "subscriber", nil)
	_, err := session.NewReceiver(ctx, "news", &amqp.ReceiverOptions{
		Name: "daily", SourceCapabilities: []string{"topic"},
		SourceDurability: amqp.DurabilityUnsettledState, SourceExpiryPolicy: amqp.ExpiryPolicyNever,
	})
	require.NoError(t, err)
	list, err := a.Subscriptions(ctx, "news")
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "subscriber.daily", list[0].Name)
	assert.True(t, list[0].Durable)

	require.NoError(t, a.CreateQueue(ctx, "made", "made", "ANYCAST"))
	list, err = a.Queues(ctx, "made")
	require.NoError(t, err)
	require.Len(t, list, 1)
	list, err = a.Subscriptions(ctx, "made")
	require.NoError(t, err)
	require.Empty(t, list)
	all, err := a.Queues(ctx, "")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(all), 4)
	require.NoError(t, a.DeleteAddress(ctx, "made"))
	require.NoError(t, a.DeleteAddress(ctx, "news"))
	list, err = a.Queues(ctx, "news")
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestFullAddressRejects(t *testing.T) {
	a := shared.Artemis(t)
	ctx := testContext(t)
	require.NoError(t, a.SetAddressLimit(ctx, brokertest.AddressLimit{Match: "full.#", MaxMessages: 5, Policy: brokertest.PolicyFail}))
	sender := newSender(t, dial(t, a.AMQPURL(), "filling-client", nil), "full.one")
	var err error
	for i := 0; i < 50 && err == nil; i++ {
		err = sender.Send(ctx, durable("x"), nil)
	}
	require.ErrorContains(t, err, "resource-limit-exceeded")
}

// TestFullAddressBlocks also shows the effect of BLOCK over AMQP: the broker grants no new credit, so a sender still uses
// up its remaining credit. Then it waits, or, if go-amqp has sent one message too many, the broker refuses that.
func TestFullAddressBlocks(t *testing.T) {
	a := shared.Artemis(t)
	ctx := testContext(t)
	require.NoError(t, a.SetAddressLimit(ctx, brokertest.AddressLimit{Match: "blocked.#", MaxBytes: 20_000, Policy: brokertest.PolicyBlock}))
	sender := newSender(t, dial(t, a.AMQPURL(), "blocked-client", nil), "blocked.one")
	var err error
	sent := 0
	for ; sent < 3000 && err == nil; sent++ {
		short, cancel := context.WithTimeout(ctx, 20*time.Second)
		err = sender.Send(short, durable("x"), nil)
		cancel()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		require.ErrorContains(t, err, "transfer-limit-exceeded", "after %d messages", sent)
	}
	_, err = a.PurgeQueue(ctx, "blocked.one")
	require.NoError(t, err)
	require.NoError(t, sender.Send(ctx, durable("x"), nil), "room again")
}

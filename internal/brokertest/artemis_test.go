//go:build unix

package brokertest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
)

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
	conn := musttest.Get(amqp.Dial(ctx, url, opts))(t)
	t.Cleanup(func() { _ = conn.Close() })
	session := musttest.Get(conn.NewSession(ctx, nil))(t)
	return session
}

func newSender(t *testing.T, s *amqp.Session, queue string) *amqp.Sender {
	t.Helper()
	sender := musttest.Get(s.NewSender(testContext(t), queue, &amqp.SenderOptions{TargetCapabilities: []string{"queue"}}))(t)
	return sender
}

func durable(body string) *amqp.Message {
	m := amqp.NewMessage([]byte(body))
	m.Header = &amqp.MessageHeader{Durable: true}
	return m
}

// testCounters: counters follow messages.
func testCounters(t *testing.T, a *brokertest.Artemis) {
	ctx := testContext(t)
	const queue = `counters, of="one":\` // names need quoting on the way to JMX

	_, err := a.Queue(ctx, queue)
	require.ErrorIs(t, err, brokertest.ErrNoQueue)

	session := dial(t, a.AMQPURL(), "counting-client", nil)
	sender := newSender(t, session, queue)
	for i := range 10 {
		require.NoError(t, sender.Send(ctx, durable(fmt.Sprint(i)), nil))
	}
	q := musttest.Get(a.Queue(ctx, queue))(t)
	assert.Equal(t, brokertest.QueueStats{
		Name: queue, Address: queue, RoutingType: "ANYCAST", Durable: true,
		MessageCount: 10, DurableMessageCount: 10, MessagesAdded: 10,
	}, q)

	receiver, err := session.NewReceiver(ctx, queue, &amqp.ReceiverOptions{Credit: 4, SourceCapabilities: []string{"queue"}})
	require.NoError(t, err)
	for range 3 {
		m := musttest.Get(receiver.Receive(ctx, nil))(t)
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
	require.NoError(t, sender.Close(ctx))
	require.NoError(t, a.DeleteQueue(ctx, queue))
	_, err = a.Queue(ctx, queue)
	require.ErrorIs(t, err, brokertest.ErrNoQueue)
}

// TestCrashPauseAndRestart goes through the life of one broker, in the order
// that costs the fewest starts.
func TestCrashPauseAndRestart(t *testing.T) {
	a := brokertest.StartArtemis(t)
	t.Run("counters", func(t *testing.T) { testCounters(t, a) })
	ctx := testContext(t)
	sender := newSender(t, dial(t, a.AMQPURL(), "", nil), "kept")
	require.NoError(t, sender.Send(ctx, durable("one"), nil))

	require.NoError(t, a.Pause())
	short, cancel := context.WithTimeout(ctx, 3*time.Second) // in which it leaves
	defer cancel()
	require.ErrorIs(t, sender.Send(short, durable("two"), nil), context.DeadlineExceeded, "a paused broker answers nothing")
	assert.True(t, a.Alive())
	require.NoError(t, a.Resume())
	_, err := a.WaitQueue(ctx, "kept", func(q brokertest.QueueStats) bool { return q.MessageCount == 2 })
	require.NoError(t, err, "it goes on where it was")

	require.ErrorContains(t, a.Start(ctx), "running")
	before := a.AMQPURL()
	require.NoError(t, a.Pause())
	a.Kill() // also of a paused one
	a.Kill()
	require.False(t, a.Alive())
	require.Error(t, a.Pause())
	require.NoError(t, a.Stop(), "it is stopped")
	_, err = a.Queue(ctx, "kept")
	require.Error(t, err)

	require.NoError(t, a.Start(ctx))
	require.Equal(t, before, a.AMQPURL())
	q := musttest.Get(a.Queue(ctx, "kept"))(t)
	assert.EqualValues(t, 2, q.MessageCount, "durable messages survive a crash")

	require.NoError(t, a.Stop())
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.NoDirExists(t, a.Dir())
}

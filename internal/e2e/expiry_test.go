//go:build unix

package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// TestExpired: messages whose time to live ends before a consumer comes are the broker's, not ours, and no run waits
// for them.
func TestExpired(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	queue := newQueue(t, a)
	r := run(t, limit, "amqp", "producer", "--url", a.AMQPURL(), "--message-count", "200", "--ttl", "300", "queue://"+queue)
	require.Equal(t, statusOK, r.status)
	<-time.After(400 * time.Millisecond) // the broker itself looks for expired messages every half a minute
	r = run(t, limit, "amqp", "consumer", "--url", a.AMQPURL(), "--duration", "1", "queue://"+queue)
	require.Equal(t, statusOK, r.status)
	require.Zero(t, r.summary.TotalReceived)
	requireCount(t, a, queue, 200, func(q brokertest.QueueStats) int64 { return q.MessagesExpired })
}

// TestExpiredOnTheWay: a thief with a prefetch takes messages and is killed; when the broker has them back, they have
// expired. The client says how many it misses, and why that may be, and ends with the drain.
func TestExpiredOnTheWay(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	queue := newQueue(t, a)
	thief := startThief(t, a, queue)
	thief.signal(syscall.SIGSTOP) // it takes the deliveries within its credit, and accepts none
	p := start(t, "amqp", "client", "--url", a.AMQPURL(), "--message-count", "100", "--ttl", "2s", "--drain-timeout", "8s", "queue://"+queue)
	_, err := a.WaitQueue(soon(t), queue, func(q brokertest.QueueStats) bool {
		return q.MessageCount+q.MessagesAcked+q.MessagesExpired >= 100 // Artemis's MessagesAdded was 99 once
	})
	require.NoError(t, err)
	<-time.After(2500 * time.Millisecond)
	thief.signal(syscall.SIGKILL)
	q, err := a.WaitQueue(soon(t), queue, func(q brokertest.QueueStats) bool {
		return q.MessageCount == 0 && q.MessagesAcked+q.MessagesExpired >= 100
	})
	require.NoError(t, err)
	r := p.wait(limit)
	require.Equal(t, statusFailed, r.status)
	require.EqualValues(t, 100, r.summary.TotalCompleted)
	require.NotZero(t, q.MessagesExpired)
	require.EqualValues(t, q.MessagesExpired, *r.summary.TotalMissing, "the broker's own counter")
	require.EqualValues(t, r.summary.TotalReceived, q.MessagesAcked)
	require.Contains(t, r.stderr, "time to live of 2s")
}

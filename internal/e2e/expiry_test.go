//go:build unix

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// TestExpired: messages that expire before a consumer comes are the broker's, not ours, and no run waits for them.
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

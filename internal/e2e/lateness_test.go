//go:build unix

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
)

// sendDelayed sends 100 messages that the broker is to hold back for a second, and receives them.
func sendDelayed(t *testing.T, protocol string, more ...string) record {
	t.Helper()
	args := append([]string{protocol, "client", "--rate", "100", "--message-count", "100", "--max-pending", "50", "--verify"}, more...)
	r := run(t, limit, args...)
	require.Equal(t, statusOK, r.status, r.stdout+r.stderr)
	require.EqualValues(t, 100, r.summary.TotalReceived)
	require.EqualValues(t, 100, r.summary.ReceivedDelayed)
	return r.summary
}

// TestLateness: brokers hold delayed messages back, and the lateness of each is its transfer time without the delay.
// The clocks of real brokers count whole milliseconds: a message may come a part of one early.
func TestLateness(t *testing.T) {
	t.Parallel()
	requireLate := func(t *testing.T, d record, inexact float64) {
		t.Helper()
		require.Zero(t, d.ReceivedEarly)
		require.NotNil(t, d.TotalLateness)
		require.EqualValues(t, 100, d.TotalLateness.Count)
		require.EqualValues(t, 1_000_000, d.TotalTransfer.Max-d.TotalLateness.Max)
		// A message that comes a part of a millisecond early has a lateness of 0.
		require.InDelta(t, 1_000_000, d.TotalTransfer.mean(t)-d.TotalLateness.mean(t), inexact)
	}
	for _, protocol := range broker.Protocols() {
		t.Run("embedded "+protocol, func(t *testing.T) {
			t.Parallel()
			requireLate(t, sendDelayed(t, protocol, "--embedded", "--delivery-delay", "1s", "queue://TEST"), 0.02)
		})
	}
	requireHeld := func(t *testing.T, d record) {
		t.Helper()
		if d.ReceivedEarly == 0 {
			requireLate(t, d, 1000)
			return
		}
		require.Less(t, d.ReceivedEarly, uint64(50))
		require.NotNil(t, d.TotalLateness)
		require.EqualValues(t, 100, d.ReceivedEarly+d.TotalLateness.Count)
		require.Greater(t, d.TotalTransfer.mean(t), 999_000.0)
	}
	a := shared.Artemis(t)
	t.Run("Artemis amqp", func(t *testing.T) {
		t.Parallel()
		requireHeld(t, sendDelayed(t, "amqp", "--url", a.AMQPURL(), "--delivery-delay", "1s", "queue://"+newQueue(t, a)))
	})
	t.Run("Artemis stomp", func(t *testing.T) {
		t.Parallel()
		requireHeld(t, sendDelayed(t, "stomp", "--url", a.STOMPURL(), "--delivery-delay", "1s", "queue://"+newQueue(t, a)))
	})
	t.Run("RocketMQ", func(t *testing.T) {
		t.Parallel()
		r := alone(t, &rocketMQ, shared.RocketMQ)
		requireHeld(t, sendDelayed(t, "rocketmq", "--delivery-delay", "1s", "--url", r.URL(), "queue://LATE"))
		for _, as := range []string{"release", "reject"} { // here, as it has the broker
			requireFails(t, as, "queue://FAIL-"+as, "rocketmq", "client", "--url", r.URL())
		}
	})
	t.Run("ActiveMQ Classic", func(t *testing.T) {
		t.Parallel()
		c := alone(t, &activeMQ, shared.ActiveMQ)
		for protocol, url := range map[string]string{"amqp": c.AMQPURL(), "stomp": c.STOMPURL()} {
			requireHeld(t, sendDelayed(t, protocol, "--url", url, "--delivery-delay", "1s", "queue://LATE."+protocol))
		}
	})
}

//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
)

// delayed are the figures of delayed messages in the JSON.
type delayed struct {
	Delayed  uint64 `json:"receivedDelayed"`
	Early    uint64 `json:"receivedEarly"`
	Lateness *struct {
		Mean  json.Number
		Max   int64
		Count uint64
	} `json:"totalLateness"`
	Transfer struct {
		Mean json.Number
		Max  int64
	} `json:"totalTransferTime"`
}

func delayedOf(t *testing.T, r *result) delayed {
	t.Helper()
	var all []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(r.json), &all))
	var d delayed
	require.NoError(t, json.Unmarshal(all[len(all)-1], &d))
	return d
}

// sendDelayed sends 100 messages that the broker is to hold back for a second, and receives them.
func sendDelayed(t *testing.T, protocol string, more ...string) delayed {
	t.Helper()
	args := append([]string{protocol, "client", "--rate", "100", "--message-count", "100", "--max-pending", "50", "--verify"}, more...)
	r := run(t, limit, args...)
	require.Equal(t, statusOK, r.status, r.stdout+r.stderr)
	d := delayedOf(t, &r)
	require.EqualValues(t, 100, r.summary.TotalReceived)
	require.EqualValues(t, 100, d.Delayed)
	return d
}

// TestLateness: brokers hold delayed messages back, and the lateness of each is its transfer time without the delay.
// The clocks of real brokers count whole milliseconds: a message may come a part of one early.
func TestLateness(t *testing.T) {
	t.Parallel()
	requireLate := func(t *testing.T, d delayed, inexact float64) {
		t.Helper()
		require.Zero(t, d.Early)
		require.NotNil(t, d.Lateness)
		require.EqualValues(t, 100, d.Lateness.Count)
		require.EqualValues(t, 1_000_000, d.Transfer.Max-d.Lateness.Max)
		transfer, err := d.Transfer.Mean.Float64()
		require.NoError(t, err)
		lateness, err := d.Lateness.Mean.Float64()
		require.NoError(t, err)
		// A message that comes a part of a millisecond early has a lateness of 0.
		require.InDelta(t, 1_000_000, transfer-lateness, inexact)
	}
	for _, protocol := range broker.Protocols() {
		t.Run("embedded "+protocol, func(t *testing.T) {
			t.Parallel()
			requireLate(t, sendDelayed(t, protocol, "--embedded", "--delivery-delay", "1s", "queue://TEST"), 0.02)
		})
	}
	t.Run("embedded rocketmq level", func(t *testing.T) {
		t.Parallel()
		requireLate(t, sendDelayed(t, "rocketmq", "--embedded", "-o", "delay-level=1", "queue://TEST"), 0.02)
	})
	requireHeld := func(t *testing.T, d delayed) {
		t.Helper()
		if d.Early == 0 {
			requireLate(t, d, 1000)
			return
		}
		require.Less(t, d.Early, uint64(50))
		require.NotNil(t, d.Lateness)
		require.EqualValues(t, 100, d.Early+d.Lateness.Count)
		mean, err := d.Transfer.Mean.Float64()
		require.NoError(t, err)
		require.Greater(t, mean, 999_000.0)
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
		for i, delay := range [][]string{{"--delivery-delay", "1s"}, {"-o", "delay-level=1"}} {
			requireHeld(t, sendDelayed(t, "rocketmq", append(delay, "--url", r.URL(), fmt.Sprintf("queue://LATE%d", i))...))
		}
		for _, as := range []string{"release", "reject"} { // here, as it has the broker
			requireFails(t, as, "queue://FAIL-"+as, "rocketmq", "client", "--url", r.URL(), "-o", "retry-level=1")
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

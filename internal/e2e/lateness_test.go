//go:build unix

package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/brokertest"
	runresult "github.com/perfmq/perfmq/pkg/result"
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

// requireFails lets consumers fail 2% of the deliveries of 500 messages. Of n deliveries n/50, rounded down, fail: 510
// deliveries, with the redeliveries, have 10 failures.
func requireFails(t *testing.T, as, destination string, args ...string) {
	t.Helper()
	const messages, failed = 500, 10
	released, rejected := uint64(failed), uint64(0)
	if as == "reject" {
		released, rejected = 0, failed
	}
	r := run(t, limit, append(args, "--verify", "--message-count", strconv.Itoa(messages), "--max-pending", "20", "--consumers", "2",
		"--consumer-fail", "2%", "--consumer-fail-as", as, "--threshold", fmt.Sprintf("consumer.released == %d", released),
		"--threshold", fmt.Sprintf("consumer.rejected == %d", rejected), destination)...)
	require.Equal(t, statusOK, r.status, r.stdout+r.stderr)
	require.Equal(t, []uint64{released, rejected}, []uint64{r.summary.ConsumerReleased, r.summary.ConsumerRejected})
	require.EqualValues(t, messages, r.summary.TotalReceived)
	v := r.verification(t)
	v.Total.Disordered, v.Total.DisorderedRedelivered = 0, 0
	require.Equal(t, runresult.Verified{Expected: messages, Received: messages, Once: messages}, v.Total, "none is lost, none counts twice")
}

// TestConsumersFail: released messages are delivered again, rejected ones are not; neither count as lost.
func TestConsumersFail(t *testing.T) {
	t.Parallel()
	for _, protocol := range broker.Protocols() {
		for _, as := range []string{"release", "reject"} {
			t.Run(protocol+" "+as, func(t *testing.T) {
				args := []string{protocol, "client", "--embedded"}
				requireFails(t, as, "queue://TEST", args...)
			})
		}
	}
	t.Run("goes on for ever", func(t *testing.T) {
		r := run(t, limit, "amqp", "client", "--embedded", "--consumer-fail", "100%", "queue://TEST")
		require.Equal(t, statusUsage, r.status)
		require.Contains(t, r.stderr, "each message would come again for ever")
	})
	a := shared.Artemis(t)
	t.Run("not over STOMP on Artemis", func(t *testing.T) {
		r := run(t, limit, "stomp", "client", "--url", a.STOMPURL(), "--consumer-fail", "1%", "queue://"+newQueue(t, a))
		require.Equal(t, statusUsage, r.status)
		require.Contains(t, r.stderr, "Artemis over STOMP: a message cannot be given back: NACK drops it\nhint: --consumer-fail-as reject\n")
	})
}

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

//go:build unix

package crossing

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// TestRuns: all counts agree with each other, with the latencies and, on Artemis, with the broker.
func TestRuns(t *testing.T) {
	for broker, at := range bothBrokers(t) {
		for _, pair := range pairs() {
			from, to := pair[0], pair[1]
			t.Run(broker+"/"+from+"-"+to, func(t *testing.T) {
				const n = 1000
				name := "run." + from + "-" + to + "." + strconv.FormatInt(time.Now().UnixNano(), 36) // for its counters
				args := func(dest string) []string {
					return []string{
						from, "client", "--url", at[from], "--consumer-url", at[to], "--message-count", "1000", "--max-pending", "50",
						"--producers", "2", "--consumers", "2", "--property", "color=red", dest,
					}
				}
				s := perfmq(t, args("queue://"+name)...)
				requireComplete(t, &s, n, n)
				if broker == "artemis" {
					q, err := shared.Artemis(t).WaitQueue(soon(t), name, func(q brokertest.QueueStats) bool {
						return q.MessageCount == 0 && q.ConsumerCount == 0 && q.MessagesAcked >= q.MessagesAdded
					})
					require.NoError(t, err)
					require.EqualValues(t, s.TotalCompleted, q.MessagesAdded, "the broker's own counter")
					require.EqualValues(t, s.TotalReceived, q.MessagesAcked, "the broker's own counter")
				}
				s = perfmq(t, args("topic://"+name+".topic")...)
				requireComplete(t, &s, n, 2*n)
			})
		}
		if broker == "classic" { // without its scheduler it delivers delayed messages at once
			s := perfmq(t, "amqp", "client", "--url", at["amqp"], "--message-count", "100", "--delivery-delay", "5m", "queue://early")
			require.EqualValues(t, 100, s.ReceivedEarly)
		}
		t.Run(broker+"/failing consumers", func(t *testing.T) { testFailing(t, broker, at) })
	}
}

// testFailing lets consumers reject 10 of 1000 messages, which go to the dead letters but for STOMP on Artemis, and
// release 10 of 1010 deliveries. The broker's own counters are compared by the run.
func testFailing(t *testing.T, broker string, at urls) {
	dead := map[string]string{"artemis": "DLQ", "classic": "ActiveMQ.DLQ"}[broker]
	fails := func(protocol, as string) summary {
		return perfmq(t, protocol, "client", "--url", at[protocol], "--message-count", "1000", "--max-pending", "50", "--consumers", "3",
			"--persistent", "--verify", "--consumer-fail", "1%", "--consumer-fail-as", as, "queue://fail."+protocol+"."+as)
	}
	for _, protocol := range []string{"amqp", "stomp"} {
		s := fails(protocol, "reject")
		require.Equal(t, []uint64{1000, 0, 10}, []uint64{s.TotalReceived, s.ConsumerReleased, s.ConsumerRejected})
		require.Zero(t, *s.TotalMissing)
		if protocol == "stomp" && broker == "artemis" { // its NACK drops the message
			continue
		}
		s = perfmq(t, protocol, "consumer", "--url", at[protocol], "--message-count", "10", "queue://"+dead)
		require.EqualValues(t, 10, s.TotalReceived, "dead letters")
	}
	s := fails("amqp", "release")
	require.Equal(t, []uint64{1000, 10, 0}, []uint64{s.TotalReceived, s.ConsumerReleased, s.ConsumerRejected})
	require.Zero(t, *s.TotalMissing)
}

// TestWithoutTransformer: ActiveMQ Classic without transport.transformer=jms delivers whole AMQP messages as bodies over
// STOMP. Verification reports them as damaged. Without it the latencies are true.
func TestWithoutTransformer(t *testing.T) {
	classic := shared.ActiveMQ(t)
	args := func(dest string, more ...string) []string {
		return append([]string{
			"amqp", "client", "--url", classic.NativeAMQPURL(), "--consumer-url", classic.STOMPURL(), "--message-count", "100",
			"--max-pending", "10", dest,
		}, more...)
	}
	status, stderr := failing(t, args("queue://native", "--verify")...)
	require.Equal(t, 1, status, stderr)
	require.Contains(t, stderr, "damaged")
	s := perfmq(t, args("queue://native.unchecked")...)
	requireComplete(t, &s, 100, 100)
}

func requireComplete(t *testing.T, s *summary, sent, received uint64) {
	t.Helper()
	require.Equal(t, sent, s.TotalSent)
	require.Equal(t, sent, s.TotalCompleted)
	require.Equal(t, received, s.TotalReceived)
	require.NotNil(t, s.TotalMissing)
	require.Zero(t, *s.TotalMissing)
	require.Zero(t, s.Unstamped, "messages without the property time")
	require.Zero(t, s.Foreign)
	require.Zero(t, s.Redelivered)
	require.Zero(t, s.Negative, "messages that came before they were sent")
	require.Equal(t, sent, s.TotalSend.Count)
	require.Equal(t, received, s.TotalTransfer.Count, "a transfer time for each message")
	require.Positive(t, s.TotalTransfer.P50)
	require.Less(t, time.Duration(s.TotalTransfer.Max)*time.Microsecond, time.Since(begun), "longer than these tests")
}

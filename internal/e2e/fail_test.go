//go:build unix

package e2e

import (
	"fmt"
	"strconv"
	"testing"

	runresult "github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
)

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

//go:build unix

package amqp_test

import (
	"context"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/brokertest"
	driveramqp "github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/internal/interoptest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// perfTotals are the totals of a run of `artemis perf`, which is a client of Qpid JMS.
type perfTotals struct{ sent, completed, received int }

// perf runs `artemis perf` with this broker to its end.
func (r *rig) perf(t testing.TB, role string, args ...string) perfTotals {
	t.Helper()
	brokertest.Needs(t, "Java")
	args = append([]string{"--protocol", "AMQP", "--url", "amqp://" + r.addr}, args...)
	ctx, cancel := context.WithTimeout(t.Context(), 3*timeout) // a Java process on a busy machine
	defer cancel()
	cmd, err := brokertest.ArtemisPerf(ctx, role, args...)
	require.NoError(t, err, "this test needs `artemis perf`")
	text, err := cmd.CombinedOutput()
	out := string(text)
	if !strings.Contains(out, "Can't remove an active durable subscription") { // its own fault, on Artemis as well
		require.NoError(t, err, out)
	}
	require.Regexp(t, `result: +success`, out)
	total := func(name string) int {
		m := regexp.MustCompile(`total ` + name + `: +(\d+)`).FindStringSubmatch(out)
		if m == nil {
			return 0
		}
		n := musttest.Get(strconv.Atoi(m[1]))(t)
		return n
	}
	return perfTotals{total("sent"), total("completed"), total("received")}
}

// TestQpidJMS has `artemis perf client` send and receive in all modes. It runs for a time: when told to stop after a number
// of messages, with one in flight, it hangs, also on Artemis.
func TestQpidJMS(t *testing.T) {
	t.Parallel()
	r := start(t, store.Config{}, amqp.Server{})
	for _, c := range []struct {
		name       string
		args       []string
		deliveries int // of each message
	}{
		{"competing, persistent", []string{"--persistent", "--consumers", "3", "--ttl", "60000", "--group", "g", "queue://P"}, 1},
		{"shared", []string{"--shared", "2", "--consumers", "2", "topic://S"}, 2},
		{"durable", []string{"--consumers", "2", "--durable", "--clientID", "qpid", "topic://D"}, 2},
		{"shared durable", []string{"--shared", "2", "--consumers", "2", "--durable", "--clientID", "both", "topic://B"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := r.perf(t, "client", append(c.args, "--duration", "1", "--rate", "200", "--max-pending", "100")...)
			require.Positive(t, got.sent)
			require.Equal(t, got.sent, got.completed, "the broker's counts: %+v", r.store.Stats())
			require.Equal(t, got.sent*c.deliveries, got.received, "the broker's counts: %+v", r.store.Stats())
		})
	}
}

// TestQpidJMSTransactions sends whole transactions only: a client that is stopped within one does not always commit it,
// and then waits for its messages.
func TestQpidJMSTransactions(t *testing.T) {
	t.Parallel()
	r := start(t, store.Config{}, amqp.Server{})
	const n = 100
	sent := r.perf(t, "producer", "--message-count", strconv.Itoa(n), "--commit-interval", "10", "--max-pending", "100", "queue://TX")
	require.Equal(t, n, sent.sent)
	r.stats(queue("TX"), func(d store.DestinationStats) bool { return d.Sent == n })
	// Its consumer acknowledges within a transaction that it never commits: all comes back.
	received := r.perf(t, "consumer", "--message-count", strconv.Itoa(n), "--tx", "queue://TX")
	require.Equal(t, n, received.received)
	r.stats(queue("TX"), func(d store.DestinationStats) bool { return d.Queues[0].Consumers == 0 })
	q := r.store.Queue("TX").Stats()
	require.EqualValues(t, n, q.Settled+uint64(q.Depth), "%+v", q)
}

// TestQpidJMSReplies has a client of Qpid JMS ask and answer.
func TestQpidJMSReplies(t *testing.T) {
	t.Parallel()
	brokertest.Needs(t, "Java")
	r, source := start(t, store.Config{}, amqp.Server{}), interoptest.Source(t, "Jms.java")
	interoptest.Run(t, driveramqp.Factory(), driver.OpenOptions{URL: "amqp://" + r.addr}, func(ctx context.Context, role, queue string) *exec.Cmd {
		const factory = "org.apache.qpid.jms.JmsConnectionFactory"
		return musttest.Get(brokertest.ArtemisJavaProgram(ctx, source, factory, "amqp://"+r.addr, "", "", role, queue, strconv.Itoa(interoptest.Requests)))(t)
	})
}

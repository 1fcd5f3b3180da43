//go:build unix

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// testReconnectAfterKill: a broker that is killed and returns with its journal has all messages that it had confirmed,
// each worker continues, and the run reports exactly the one outage.
func testReconnectAfterKill(t *testing.T, a *brokertest.Artemis) {
	t.Helper()
	type load struct {
		protocol, url, queue string
		run                  *process
	}
	loads := []*load{{protocol: "amqp", url: a.AMQPURL()}, {protocol: "stomp", url: a.STOMPURL()}}
	for _, l := range loads {
		l.queue = newQueue(t, a)
		l.run = start(t, l.protocol, "client", "--url", l.url, "--reconnect", "--verify", "--persistent", "--producers", "2", "--consumers", "2",
			"--rate", "300", "--max-pending", "50", "--message-count", "6000", "--threshold", "outage.count == 1", "queue://"+l.queue)
	}
	for _, l := range loads {
		l.run.printed("--- warmup false")
		eventually(t, "messages", func() bool { return counters(t, a, l.queue).MessagesAcked > 300 })
	}
	killed := time.Now()
	a.Kill()
	require.NoError(t, a.Start(soon(t)))
	back := time.Now()
	for _, l := range loads {
		r := l.run.wait(limit)
		require.Equal(t, statusOK, r.status, "%s: %s%s", l.protocol, r.stdout, r.stderr)
		require.Regexp(t, `(?m)^--- result: success after 1 outage of .*: 0 lost, `, r.stdout)
		v := r.verification(t)
		require.Zero(t, v.Total.Lost+v.Total.Left+v.Total.Damaged)
		require.EqualValues(t, 6000, r.summary.TotalSent)
		require.EqualValues(t, 6000, v.Total.Expected+r.summary.TotalUnconfirmed)
		require.Equal(t, r.summary.TotalUnconfirmed, v.Total.UnconfirmedArrived+v.Total.UnconfirmedMissing)
		require.Len(t, r.summary.Details.Outages, 1)
		o := r.summary.Details.Outages[0]
		require.Equal(t, r.summary.TotalUnconfirmed, o.InDoubt)
		require.Len(t, o.Workers, 4)
		require.Empty(t, o.NotBack)
		require.GreaterOrEqual(t, o.Time, killed.UnixMicro())
		require.Less(t, o.Time, back.UnixMicro(), "the ends of the connections are noticed when the broker dies")
		require.Positive(t, o.Confirmed)
		require.Positive(t, o.Received)
		q := settled(t, a, l.queue)
		require.Zero(t, q.MessageCount, "nothing is left at the broker")
	}
}

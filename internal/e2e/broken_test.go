//go:build unix

package e2e

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

const (
	drainTimeout   = 3 * time.Second
	connectTimeout = 10 * time.Second
	// slowMachine is the additional time that processes may take on a busy machine.
	slowMachine = 45 * time.Second
)

// mortal are the runs that see their broker die: each role, closed and open loop.
func mortal() map[string][]string {
	return map[string][]string{
		"client, closed loop, 50":      {"client", "--max-pending", "50"},
		"producer, open loop":          {"producer", "--rate", "200"},
		"consumer":                     {"consumer"},
		"client, durable subscription": {"client", "--durable", "--clientID", "mortal", "--rate", "50"},
	}
}

// startMortal starts them all and waits until each has made load for a second.
func startMortal(t *testing.T, a *brokertest.Artemis) (runs map[string]*process, hdrs map[string]string) {
	t.Helper()
	// A Java that has just started answers the first connections late.
	require.Equal(t, statusOK, run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--connect-timeout", "1m", "--message-count", "500",
		"--producers", "5", "--consumers", "5", "queue://"+unique(t, "queue")).status)
	runs, hdrs = map[string]*process{}, map[string]string{}
	for name, args := range mortal() {
		hdrs[name] = filepath.Join(t.TempDir(), "run.hdr")
		dest := "queue://" + unique(t, "queue")
		if args[0] == "client" && len(args) > 1 && args[1] == "--durable" {
			dest = "topic://" + unique(t, "topic")
		}
		all := append([]string{"amqp"}, args...)
		all = append(all, "--url", a.AMQPURL(), "--hdr", hdrs[name], "--drain-timeout", drainTimeout.String(),
			"--connect-timeout", connectTimeout.String(), "--show-latency", dest)
		runs[name] = start(t, all...)
	}
	for _, p := range runs {
		p.printed("--- warmup false")
	}
	return runs, hdrs
}

// TestBrokerBreaks: one broker is frozen, killed and started again, and killed at last.
func TestBrokerBreaks(t *testing.T) {
	t.Parallel()
	a := brokertest.StartArtemis(t)
	t.Run("frozen", func(t *testing.T) { testBrokerFrozen(t, a) })
	t.Run("frozen with a backlog", func(t *testing.T) { testFrozenBrokerHasNotLost(t, a) })
	t.Run("killed and started", func(t *testing.T) { testReconnectAfterKill(t, a) })
	t.Run("killed", func(t *testing.T) { testBrokerKilled(t, a) })
}

// testBrokerKilled: the runs end soon, with the summary of all that was measured, complete files and status 1.
func testBrokerKilled(t *testing.T, a *brokertest.Artemis) {
	t.Helper()
	runs, hdrs := startMortal(t, a)
	killed := time.Now()
	a.Kill()
	for name, p := range runs {
		t.Run(name, func(t *testing.T) {
			r := p.in(t).wait(killed.Add(connectTimeout + drainTimeout + slowMachine).Sub(p.began))
			t.Logf("ended %s after the broker", p.began.Add(p.took).Sub(killed).Round(time.Millisecond))
			require.Equal(t, statusFailed, r.status)
			require.Equal(t, "fail", r.summary.Result)
			require.NotEmpty(t, r.summary.Problems)
			require.NotEmpty(t, r.intervals)
			requireComplete(t, hdrs[name], &r)
			if p.args[1] != "consumer" {
				require.NotZero(t, r.summary.TotalCompleted, "what was measured before")
			}
		})
	}
}

// testBrokerFrozen: a broker that stops answering with its connections open does not keep a run from its end, and the
// run reports the number of unconfirmed messages.
func testBrokerFrozen(t *testing.T, a *brokertest.Artemis) {
	t.Helper()
	runs, hdrs := startMortal(t, a)
	require.NoError(t, a.Pause())
	defer func() { require.NoError(t, a.Resume()) }()
	<-time.After(3 * time.Second) // of load without an answer
	stopped := time.Now()
	for _, p := range runs {
		p.signal(syscall.SIGINT)
	}
	for name, p := range runs {
		t.Run(name, func(t *testing.T) {
			// Links, then connections, are closed within a connect time-out each.
			r := p.in(t).wait(stopped.Add(drainTimeout + connectTimeout + slowMachine).Sub(p.began))
			t.Logf("ended %s after the load", p.began.Add(p.took).Sub(stopped).Round(time.Millisecond))
			requireComplete(t, hdrs[name], &r)
			require.Equal(t, "interrupted", r.summary.Reason)
			if p.args[1] == "consumer" {
				require.Zero(t, r.summary.TotalReceived)
				return
			}
			require.Equal(t, statusFailed, r.status)
			require.NotZero(t, r.summary.TotalCompleted)
			require.NotZero(t, r.summary.TotalUnconfirmed, "what it did not answer")
			require.Equal(t, r.summary.TotalSent, r.summary.TotalCompleted+r.summary.TotalUnconfirmed)
		})
	}
}

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

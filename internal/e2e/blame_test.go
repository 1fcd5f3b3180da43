//go:build unix

package e2e

import (
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// hog keeps all processors busy until the test ends.
func hog(t *testing.T) {
	t.Helper()
	for range 2 * runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done") //nolint:noctx // ends with the test
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// TestOthersAreToBlame: a tester that gets no processor because other programs use them all does not blame itself.
func TestOthersAreToBlame(t *testing.T) {
	hog(t)
	r := run(t, limit, "amqp", "client", "--embedded", "--rate", "3000", "--max-pending", "100", "--duration", "5", "--warmup", "1", "queue://TEST")
	for _, w := range r.summary.Warnings {
		require.NotContains(t, w, "perfmq was the bottleneck")
		require.NotContains(t, w, "own fault")
	}
}

// TestPausedTester: after a pause of its own perfmq reports it, with the number of latencies that include it, instead
// of charging it to the broker.
func TestPausedTester(t *testing.T) {
	t.Parallel()
	pause := func(load ...string) result {
		p := start(t, append([]string{"amqp", "client", "--embedded", "--duration", "6", "--threshold", "stall.count == 0", "queue://TEST"}, load...)...)
		p.printed("--- warmup false")
		p.signal(syscall.SIGSTOP)
		<-time.After(1500 * time.Millisecond)
		p.signal(syscall.SIGCONT)
		r := p.wait(limit)
		require.Equal(t, statusOK, r.status, "the broker did not stall: %s", r.stdout)
		require.NotContains(t, r.stdout, "--- finding: the broker")
		require.Regexp(t, `\n--- tester paused: +[1-9]\d{6}\.\d\d us \(longest of \d+; latencies of \d+ sends and receipts include that\)\n`, r.stdout)
		require.Contains(t, fmt.Sprint(r.summary.Warnings), "perfmq was paused")
		for _, w := range r.summary.Warnings {
			require.NotContains(t, w, "own fault", "it is known what it was")
		}
		return r
	}
	rated := pause("--rate", "500", "--max-pending", "100")
	require.Greater(t, rated.summary.Paused, uint64(600), "so many were due meanwhile, though few were in flight")
	// A closed loop has messages in flight at almost any moment: not while its producer waits for a processor.
	for range 5 {
		r := pause("--max-pending", "4")
		if max(r.summary.TotalSend.Max, r.summary.TotalTransfer.Max) >= 1_400_000 {
			require.Positive(t, r.summary.Paused)
			return
		}
		require.Zero(t, r.summary.Paused)
	}
	require.Fail(t, "no message was in flight in any of five pauses")
}

// testFrozenBrokerHasNotLost: messages that a stopped broker still holds are left, not lost; after it resumes, all are
// there.
func testFrozenBrokerHasNotLost(t *testing.T, a *brokertest.Artemis) {
	t.Helper()
	queue := newQueue(t, a)
	p := start(t, "amqp", "client", "--url", a.AMQPURL(), "--verify", "--producers", "4", "--credit", "10", "--max-pending", "50",
		"--drain-timeout", "4s", "--connect-timeout", "10s", "--duration", "60", "queue://"+queue)
	p.printed("--- warmup false")
	eventually(t, "a backlog", func() bool { return counters(t, a, queue).MessageCount > 500 })
	require.NoError(t, a.Pause())
	defer func() { require.NoError(t, a.Resume()) }()
	p.signal(syscall.SIGINT)
	r := p.wait(limit)
	require.Equal(t, statusFailed, r.status)
	v := r.verification(t)
	require.Zero(t, v.Total.Lost, r.stdout)
	require.Positive(t, v.Total.Left)
	require.Contains(t, r.stdout, "the broker gave no answer before the consumers ended")

	require.NoError(t, a.Resume())
	inDoubt := r.summary.TotalUnconfirmed
	c := run(t, limit, "amqp", "consumer", "--url", a.AMQPURL(), "--message-count", strconv.FormatUint(v.Total.Left, 10), "queue://"+queue)
	require.Equal(t, v.Total.Left, c.summary.TotalReceived, "all that was left was there")
	require.LessOrEqual(t, counters(t, a, queue).MessageCount, int64(inDoubt)+10, "and what was in doubt, or not acknowledged in time")
}

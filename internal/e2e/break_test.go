//go:build unix

package e2e

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// TestAllArrive: all messages arrive, by the broker's own counters.
func TestAllArrive(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	for name, c := range map[string]struct {
		n    int // 0: not known before
		args []string
	}{
		"empty":        {50, []string{"--message-size", "0"}},
		"1 byte":       {50, []string{"--message-size", "1"}},
		"10 MB":        {3, []string{"--message-size", "10MB"}},
		"at most once": {5000, []string{"--max-pending", "10", "-o", "settle=at-most-once"}},
		"more consumers than producers": {0, []string{
			"--duration", "2", "--producers", "2", "--consumers", "9", "--max-pending", "10",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := newQueue(t, a)
			args := append([]string{"amqp", "client", "--url", a.AMQPURL(), "queue://" + queue}, c.args...)
			if c.n > 0 {
				args = append(args, "--message-count", strconv.Itoa(c.n))
			}
			r := run(t, limit, args...)
			require.Equal(t, statusOK, r.status)
			require.True(t, c.n == 0 || uint64(c.n) == r.summary.TotalReceived)
			require.Equal(t, r.summary.TotalCompleted, r.summary.TotalReceived)
			require.EqualValues(t, r.summary.TotalReceived, settled(t, a, queue).MessagesAcked)
		})
	}
}

// TestQuit: SIGQUIT writes the stacks, and its status differs from a usage mistake's.
func TestQuit(t *testing.T) {
	t.Parallel()
	p := start(t, "amqp", "client", "--embedded", "--rate", "10", "queue://T")
	p.printed("--- warmup false")
	p.signal(syscall.SIGQUIT)
	<-p.done
	require.Equal(t, 128+int(syscall.SIGQUIT), p.cmd.ProcessState.ExitCode())
	require.Contains(t, p.stderr.String(), "goroutine 1 [")
}

// startThief starts another consumer, in a process of its own, that takes a part of a queue's messages.
func startThief(t *testing.T, a *brokertest.Artemis, queue string) *process {
	t.Helper()
	thief := start(t, "amqp", "consumer", "--url", a.AMQPURL(), "queue://"+queue)
	eventually(t, "the thief is at the queue", func() bool { return counters(t, a, queue).ConsumerCount == 1 })
	thief.printed("--- received:") // for a second, so that the broker has its credit
	return thief
}

// TestSecondSignal interrupts a drain that would last: another consumer takes half of the messages.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	queue := newQueue(t, a)
	thief := startThief(t, a, queue)
	p := start(t, "amqp", "client", "--url", a.AMQPURL(), "--rate", "100", "--drain-timeout", "5m", "queue://"+queue)
	p.printed("--- warmup false")
	p.signal(syscall.SIGINT)
	p.told("stopping: ")
	select {
	case <-p.done:
		t.Fatal("it did not wait for what the thief has")
	case <-time.After(time.Second):
	}
	p.signal(syscall.SIGINT)
	second := time.Now()
	r := p.wait(limit)
	require.Less(t, time.Since(second), 2*time.Minute, "it leaves at once, with minutes left to drain")
	emptied(t, a, queue) // the client's unsettled deliveries have gone to the thief
	thief.signal(syscall.SIGTERM)
	stolen := thief.wait(limit)
	require.Contains(t, []int{statusFailed, statusInterrupted}, r.status)
	require.Equal(t, statusInterrupted, stolen.status)
	require.NotZero(t, stolen.summary.TotalReceived)
	require.NotNil(t, r.summary.TotalMissing, "the summary is there")
	require.Equal(t, stolen.summary.TotalReceived, *r.summary.TotalMissing)
	require.EqualValues(t, r.summary.TotalCompleted, settled(t, a, queue).MessagesAdded)
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Log("no /dev/full on this system; the reporters' own tests have a full disk everywhere")
		return
	}
	a := shared.Artemis(t)
	for _, flag := range []string{"--json", "--hdr"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			queue := newQueue(t, a)
			r := run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--duration", "2", flag, "/dev/full", "queue://"+queue)
			require.Equal(t, statusFailed, r.status)
			require.Equal(t, 1, strings.Count(r.stderr, "no space left"), "it is told once")
			require.Regexp(t, `--- result: {14}success\n`, r.stdout, "the run goes on")
			m := regexp.MustCompile(`--- total completed: *(\d+)\n`).FindStringSubmatch(r.stdout)
			require.EqualValues(t, parseUint(t, m[1]), settled(t, a, queue).MessagesAdded)
		})
	}
	r := run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--duration", "1", "--json", "/dev/null/x", "queue://A")
	require.Equal(t, statusUsage, r.status)
}

// TestConsumerTakesNoMore: a consumer with a count leaves the rest at the broker.
func TestConsumerTakesNoMore(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	queue := newQueue(t, a)
	require.Equal(t, statusOK, run(t, limit, "amqp", "producer", "--url", a.AMQPURL(), "--message-count", "1000", "--max-pending", "50", "queue://"+queue).status)
	r := run(t, limit, "amqp", "consumer", "--url", a.AMQPURL(), "--message-count", "300", "queue://"+queue)
	require.Equal(t, statusOK, r.status)
	require.EqualValues(t, 300, r.summary.TotalReceived)
	q, err := a.WaitQueue(soon(t), queue, func(q brokertest.QueueStats) bool {
		return q.ConsumerCount == 0 && q.DeliveringCount == 0 && q.MessagesAcked >= 300
	})
	require.NoError(t, err)
	require.EqualValues(t, 300, q.MessagesAcked)
	require.EqualValues(t, 700, q.MessageCount)
}

func TestSelector(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	for color, got := range map[string]uint64{"red": 200, "blue": 0, `{{pick "red" "red"}}`: 200, "{{seq}}": 0} {
		t.Run(color, func(t *testing.T) {
			t.Parallel()
			queue := newQueue(t, a)
			r := run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--message-count", "200", "--max-pending", "10",
				"--property", "color="+color, "--selector", "color = 'red'", "queue://"+queue)
			require.Equal(t, statusOK, r.status)
			require.EqualValues(t, 200, r.summary.TotalCompleted)
			require.EqualValues(t, got, r.summary.TotalReceived)
			require.Nil(t, r.summary.TotalMissing, "nobody knows how many the selector lets pass")
			requireCount(t, a, queue, 200-got, func(q brokertest.QueueStats) int64 { return q.MessageCount })
		})
	}
}

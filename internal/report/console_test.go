package report

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

func TestConsole(t *testing.T) {
	t.Parallel()
	busy := stats.Counters{result.Sent: 27640, result.Blocked: 365, result.Completed: 27578, result.Received: 26457}
	whole := stats.Counters{result.Sent: 1216053, result.Blocked: 845, result.Completed: 1216053, result.Received: 1216053}
	known := summary(whole, closedLoop())
	known.Expected, known.Missing = new(whole[result.Completed]), new(uint64)

	producerOnly, consumerOnly := clientRun(), clientRun()
	producerOnly.Consuming, consumerOnly.Producing = false, false
	onlyAck, onlyTransfer := closedLoop(), closedLoop()
	onlyAck[result.Transfer], onlyTransfer[result.Ack] = nil, nil
	sent := stats.Counters{result.Sent: 70194, result.Blocked: 70194, result.Completed: 70194}
	received := stats.Counters{result.Received: 70194, result.Unstamped: 12}
	nothing := result.Latencies{
		result.Delay: result.NewLatency(), result.Ack: result.NewLatency(), result.Response: result.NewLatency(), result.Transfer: result.NewLatency(),
	}
	silence := summary(stats.Counters{}, nothing)
	silence.Tester = result.Tester{}
	numbers := numbersRun()
	numbers.BrokerHosts = []result.BrokerHost{{Name: "a:1", Connections: 1, Producers: 1, Consumers: 1, Sent: 4000, Completed: 3900, Unconfirmed: 100, Received: 3800}}

	for _, test := range []struct {
		name        string
		run         stats.Run
		showLatency bool
		intervals   []*stats.Snapshot
		summary     *stats.Summary
	}{
		{"client", clientRun(), false, []*stats.Snapshot{
			snapshot(stats.Warmup, 0, busy, closedLoop()), snapshot(stats.Measure, 1, busy, closedLoop()),
			snapshot(stats.Drain, 2, stats.Counters{result.Received: 101}, closedLoop()),
		}, known},
		{"client-rate-latency", clientRun(), true, []*stats.Snapshot{
			snapshot(stats.Warmup, 0, busy, openLoop()), snapshot(stats.Measure, 1, busy, openLoop()),
		}, summary(whole, openLoop())},
		{"producer", producerOnly, true, []*stats.Snapshot{snapshot(stats.Measure, 0, sent, onlyAck)}, summary(sent, onlyAck)},
		{"consumer", consumerOnly, true, []*stats.Snapshot{snapshot(stats.Measure, 0, received, onlyTransfer)}, summary(received, onlyTransfer)},
		{"failure", clientRun(), false, nil, brokenRun()},
		{"own", clientRun(), false, nil, ownRun()},
		{"numbers", clientRun(), false, nil, numbers},
		{"own-consumer", consumerOnly, false, nil, ownRun()},
		{"zero", clientRun(), true, []*stats.Snapshot{
			between("", stats.Measure, loadStart(), loadStart().Add(time.Second), stats.Counters{}, nothing),
			between("", stats.Measure, loadStart(), loadStart(), stats.Counters{}, nothing), // too short to be printed
		}, silence},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			c := NewConsole(&out, ConsoleOptions{URL: "amqp://127.0.0.1:5672", ShowLatency: test.showLatency})
			require.NoError(t, c.Start(test.run))
			for _, s := range test.intervals {
				require.NoError(t, c.Interval(s))
			}
			require.NoError(t, c.Summary(test.summary))
			require.NoError(t, c.Close())
			golden(t, "console-"+test.name+".txt", out.String())
			for line := range strings.Lines(out.String()) {
				require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"), "no space at a line's end")
			}
			require.NotContains(t, out.String(), "NaN")
		})
	}
}

// The lines of artemis perf's user guide, with the spaces at line ends removed.
func TestConsoleIsArtemisPerfToTheCharacter(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := NewConsole(&out, ConsoleOptions{ShowLatency: true})
	require.NoError(t, c.Start(clientRun()))
	start := time.Now()
	ack := result.NewLatency()
	ack.Record(113 * time.Microsecond)
	ack.Record(3455 * time.Microsecond)
	require.NoError(t, c.Interval(between("", stats.Warmup, start, start.Add(time.Second),
		stats.Counters{result.Sent: 27366, result.Blocked: 361, result.Completed: 27305, result.Received: 26195}, result.Latencies{result.Ack: ack})))
	require.Equal(t, `
--- warmup true
--- sent:         27366 msg/sec
--- blocked:        361 msg/sec
--- completed:    27305 msg/sec
--- received:     26195 msg/sec
--- send ack time:   mean:   1784.00 us - 50.00%:    113.00 us - 90.00%:   3455.00 us - 99.00%:   3455.00 us - 99.90%:   3455.00 us - 99.99%:   3455.00 us - max:      3455.00 us
`, out.String())

	out.Reset()
	require.NoError(t, c.Interval(between("", stats.Measure, start, start.Add(time.Second),
		stats.Counters{result.Sent: 5, result.Completed: 5, result.Foreign: 41234}, result.Latencies{})))
	require.Contains(t, out.String(), "--- received:         0 msg/sec\n--- foreign:      41234 msg/sec\n")

	out.Reset()
	require.NoError(t, c.Summary(summary(
		stats.Counters{result.Sent: 1216053, result.Blocked: 845, result.Completed: 1216053, result.Received: 1216053}, result.Latencies{result.Ack: ack})))
	require.True(t, strings.HasPrefix(out.String(), `
--- SUMMARY
--- result:              success
--- total sent:          1216053
--- total blocked:           845
--- total completed:     1216053
--- total received:      1216053
--- aggregated send time:       mean:   1784.00 us - 50.00%: `), out.String())
}

func TestConsoleWriteError(t *testing.T) {
	t.Parallel()
	full := musttest.Get(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
	defer full.Close()
	c := NewConsole(full, ConsoleOptions{URL: "amqp://h"})
	err := c.Start(clientRun())
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "print to the console: ")

	_, pipe := io.Pipe()
	_ = pipe.CloseWithError(errors.New("x"))
	require.Error(t, NewConsole(pipe, ConsoleOptions{}).Interval(snapshot(stats.Measure, 0, stats.Counters{}, result.Latencies{})))
}

func TestRate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		delta    uint64
		interval time.Duration
		want     uint64
	}{
		{0, time.Second, 0},
		{999, 1001 * time.Millisecond, 998}, // 998.002
		{10, 1049 * time.Millisecond, 10},   // 9.53
		{10, 21 * time.Second, 0},
		{5, 0, 0},
		{5, -time.Second, 0},
		{20_000_000_000, 2 * time.Second, 10_000_000_000},
	} {
		require.Equal(t, test.want, rate(test.delta, test.interval), "%d in %v", test.delta, test.interval)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	require.Empty(t, failureText(nil))
	require.Equal(t, "timeout 10, full 2, connection-lost 2, unclassified 1",
		failureText(map[string]uint64{"connection-lost": 2, "timeout": 10, "full": 2, "none": 1}))
}

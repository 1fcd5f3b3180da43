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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
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

func TestWriteBrokers(t *testing.T) {
	t.Parallel()
	artemis := result.Broker{Protocol: "amqp", Product: "apache-activemq-artemis", Version: "2.40.0"}
	of := func(b result.Broker, name, side string) result.Broker { b.Name, b.Side = name, side; return b }
	for want, list := range map[string][]result.Broker{
		"": nil,
		"--- broker: apache-activemq-artemis 2.40.0\n": {artemis},
		"--- broker:              mystery\n":           {{Product: "mystery"}},
		"--- broker: apache-activemq-artemis 2.40.0 (producers)\n--- broker:       RabbitMQ 4.0.5 (consumers)\n": {
			of(artemis, "", "producers"), {Product: "RabbitMQ", Version: "4.0.5", Side: "consumers"},
		},
		"--- broker: apache-activemq-artemis 2.40.0 (a)\n--- broker: apache-activemq-artemis 2.40.0 (b)\n--- broker:       RabbitMQ 4.0.5 (c)\n": {
			of(artemis, "a", ""), of(artemis, "b", ""), of(artemis, "a", ""), {Product: "RabbitMQ", Version: "4.0.5", Name: "c"},
		},
		"--- broker: a\\x1b[2J; --- broker: fake 1\n": {{Product: "a\x1b[2J\n--- broker: fake", Version: "1"}},
	} {
		var b strings.Builder
		writeBrokers(&b, list)
		assert.Equal(t, want, b.String())
	}
}

func TestOutageLines(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.Local)
	s := &stats.Summary{Result: result.Result{Complete: true, Outcome: result.Outcome{Success: true}, Outages: []result.Outage{
		{
			Time: at.UnixMicro(), Length: 1_500_000, Confirmed: 1_500_000, Received: 2_000_000, Tried: 1_000_000, Back: 1_250_000,
			Reconnected: 3_000_000, Workers: []string{"a", "b"}, Attempts: 1,
			InDoubt: 7, Resent: 8, Lost: 3, Doubled: 5, Silent: 12_000_000, Recovered: 4_000_000, Watched: 6_000_000,
			Class: driver.ClassConnectionLost.String(), Error: "reset\x1b[2J",
		},
		{
			Time: at.Add(time.Minute).UnixMicro(), Workers: []string{"a"}, NotBack: []string{"a"}, Attempts: 12,
			LastAttempt: "no route", Class: driver.ClassConnect.String(), Error: "refused",
		},
	}}}
	require.Equal(t, "success after 2 outages (not all have an end): 7 in doubt", outcomeOf(s))
	require.Equal(t, []string{
		"at 03:04:05.006 for 1.5 s: the broker came back between 1 s and 1.25 s; 2 workers connected again after 3 s; 1 attempt failed; rate recovered after 4 s; nothing had come for 12 s before it; " +
			"7 in doubt; 8 resent; 3 lost; 5 duplicated; connection-lost: reset\x1b[2J", // writeList escapes it
		"at 03:05:05.006: no message came through after it; 1 of 1 worker not connected again; 12 attempts failed; the last: no route; connect: refused",
	}, outageLines(s))
	storm := s.Outages[1]
	storm.Workers, storm.NotBack, storm.Attempts = make([]string, 5000), make([]string, 4), 0
	storm.LastBack, storm.Logins, storm.LoginP99, storm.LoginRate = 41_000_000, 4996, 3_100_000, 380
	require.Equal(t, "at 03:05:05.006: no message came through after it; 4996 of 5000 workers connected again, the last after 41 s; "+
		"login p99 3.10 s, at most 380 logins a second; the last: no route; connect: refused", words.Outage(&storm))
	more := &result.MoreOutages{Count: 3000, Length: 3_600_000_000, Longest: 9_000_000, InDoubt: 40}
	many := &stats.Summary{Result: result.Result{Complete: true, Outcome: s.Outcome, Outages: s.Outages, MoreOutages: more}}
	require.Equal(t, "success after 3002 outages (not all have an end): 47 in doubt", outcomeOf(many))
	require.Equal(t, "beside the first and the last 100: 3000 outages, 3600 s in all, the longest 9 s; 40 in doubt",
		outageLines(many)[0])
	require.Len(t, outageLines(many), 3)
	var short bytes.Buffer
	require.NoError(t, NewShort(&short, ConsoleOptions{}).Summary(s))
	require.Contains(t, short.String(), "\noutage    at 03:05:05.006: no message came through after it; ")
	for want, o := range map[string]result.Outcome{
		"fail": {Interrupted: true}, "success": {Success: true, Interrupted: true}, "fail after 1 outage of 1.5 s: 7 in doubt": {},
	} {
		s := &stats.Summary{Result: result.Result{Complete: true, Outcome: o}}
		if strings.Contains(want, "outage") {
			s.Outages = many.Outages[:1]
		}
		require.Equal(t, want, outcomeOf(s), "the words of artemis perf")
	}
}

// TestOutageLive: during an outage, the console and the short format describe it, and a row counts the workers without
// a connection.
func TestOutageLive(t *testing.T) {
	t.Parallel()
	for text, p := range map[string]*stats.OutageProgress{
		"": nil, "1.5 s, 1 worker not connected": {Count: 1, Down: 1, Since: 1500 * time.Millisecond},
		"2.0 s, all workers connected again, no message yet": {Count: 1, Since: 2 * time.Second},
	} {
		var console, short bytes.Buffer
		s := snapshot(stats.Measure, 0, stats.Counters{}, result.Latencies{})
		s.Outage = p
		c := NewConsole(&console, ConsoleOptions{})
		require.NoError(t, c.Start(clientRun()))
		require.NoError(t, c.Interval(s))
		require.Equal(t, text != "", strings.Contains(console.String(), "--- outage:"))
		require.Contains(t, console.String(), text)
		sh := NewShort(&short, ConsoleOptions{Lines: true})
		require.NoError(t, sh.Start(clientRun()))
		require.NoError(t, sh.Interval(s))
		require.Contains(t, short.String(), text)
		require.Equal(t, text != "", strings.Contains(short.String(), "outage: "))
	}
}

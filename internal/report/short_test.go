package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/result"
)

// spread returns a latency around a value, with a tail.
func spread(around time.Duration) *result.Latency {
	l := result.NewLatency()
	for i := range 1000 {
		l.Record(around*time.Duration(60+i%80)/100 + around*time.Duration(i/990)*7)
	}
	return l
}

// TestVerified: the counts of a verification fit one line; lost is unknown where a side is missing.
func TestVerified(t *testing.T) {
	r := &verify.Result{}
	r.Total.Expected, r.Total.Once, r.Total.Lost, r.Total.Duplicates, r.Total.Damaged = 1000, 990, 7, 3, 2
	require.Equal(t, "990 received once: 3 duplicated, 2 damaged; lost unknown", verified(r))
	r.Known = true
	require.Equal(t, "990 of 1000 received once: 7 lost, 3 duplicated, 2 damaged", verified(r))
}

// shortRuns returns summaries of runs by name.
func shortRuns() map[string]*stats.Summary {
	base := func() *stats.Summary {
		s := summary(stats.Counters{result.Sent: 600_000, result.Blocked: 20, result.Completed: 600_000, result.Received: 600_000}, result.Latencies{
			result.Ack: spread(200 * time.Microsecond), result.Response: spread(250 * time.Microsecond), result.Delay: spread(50 * time.Microsecond), result.Transfer: spread(400 * time.Microsecond),
		})
		s.Expected, s.Missing = new(uint64(600_000)), new(uint64)
		s.Average = stats.Average{Span: 50 * time.Second, Sent: 500_000, Completed: 500_000, Received: 500_000, CompletedBytes: 512_000_000, ReceivedBytes: 512_000_000}
		s.Offered = stats.Offered{Due: 500_000, Sent: 500_000, Span: 50 * time.Second, Rate: 10_000}
		s.End = loadStart().Add(60 * time.Second).UnixMicro()
		low := result.Extreme{Seconds: 50, PerSecond: 9876, Time: loadStart().Add(20 * time.Second).UnixMicro(), Elapsed: (20 * time.Second).Microseconds()}
		high := result.Extreme{Seconds: 50, PerSecond: 10_123, Time: loadStart().Add(30 * time.Second).UnixMicro(), Elapsed: (30 * time.Second).Microseconds()}
		s.Minimum, s.Maximum = stats.Peaks{Completed: low, Received: low}, stats.Peaks{Completed: high, Received: high}
		s.Limit = &result.Limit{Kind: result.LimitNone, Text: "the rate was reached"}
		s.Tester.MemoryPeak = 45_200_000
		s.Brokers = []result.Broker{{Product: "apache-activemq-artemis", Version: "2.44.0"}}
		return s
	}
	failure, stalled, loss, saturated := base(), base(), base(), base()
	failure.Outcome.Success, failure.Outcome.Reason = false, "producer-0 failed"
	failure.Total = stats.Counters{result.Sent: 600_000, result.Blocked: 20, result.Completed: 599_000, result.Failed: 990, result.Unconfirmed: 10, result.Received: 600_000}.Counts(true, true)
	failure.Findings = said([]string{"producer-0: send to queue://TEST: connection reset by peer", "messages failed: 990", "messages without an answer, which the broker may have or not: 10"})
	failure.Thresholds = fakeThresholds()
	stalled.Find("stall", "both", 5, "the broker stalled", "5 times", "2 s", "at 4.000 s (12:00:04) for 2.000 s, "+
		"at 14.000 s (12:00:14) for 2.000 s, at 24.000 s (12:00:24) for 2.000 s and 2 more; every 10 s")
	for _, low := range []*result.Extreme{&stalled.Minimum.Completed, &stalled.Minimum.Received} {
		low.PerSecond = 0
	}
	loss.Outcome.Success, *loss.Missing, loss.Total.Consumers.Received = false, 27, 599_973
	loss.Findings = said([]string{"messages lost: 27 (accepted by the broker, never received; first: producer-0 17, 18, 19 on queue://TEST)"})
	saturated.Offered = stats.Offered{}
	saturated.Latencies[result.Delay], saturated.Latencies[result.Response] = nil, nil
	saturated.Limit = &result.Limit{
		Kind: result.LimitWorker, Share: 0.97, Text: "producer-0 never waited in 50 s of 50 s",
		Hint: "try more producers, consumers or connections",
	}
	for i := range 30 {
		saturated.Find("bottleneck", "", 1, "perfmq", fmt.Sprintf("producer-%d never waited in 50 s of 50 s", i))
	}
	return map[string]*stats.Summary{"success": base(), "failure": failure, "stall": stalled, "loss": loss, "saturated": saturated}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for name, s := range shortRuns() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			c := NewShort(&out, ConsoleOptions{})
			require.NoError(t, c.Start(clientRun()))
			require.NoError(t, c.Interval(snapshot(stats.Measure, 0, stats.Counters{result.Sent: 1}, s.Latencies)))
			require.Empty(t, out.String(), "nothing per second but on a terminal")
			require.NoError(t, c.Summary(s))
			golden(t, "short-"+name+".txt", out.String())
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			require.LessOrEqual(t, len(lines), shortLines)
			for _, line := range lines {
				require.Equal(t, strings.TrimRight(line, " "), line)
				require.LessOrEqual(t, utf8.RuneCountInString(line), shortColumns)
			}
			require.NotContains(t, out.String(), "\x1b")
		})
	}
}

// The first line and the verdict name the destinations, the first few of many.
func TestShortNamesDestinations(t *testing.T) {
	t.Parallel()
	for want, list := range map[string][]string{
		"queue://A":                          {"queue://A"},
		"queue://A, topic://B":               {"queue://A", "topic://B"},
		"queue://A, B, C, D and 2 more":      {"queue://A", "B", "C", "D", "E", "F"},
		"queue://A\\x1b[2J, queue://minutes": {"queue://A\x1b[2J", "queue://minutes"},
	} {
		var out bytes.Buffer
		c := NewShort(&out, ConsoleOptions{URL: "amqp://localhost:5672"})
		run := clientRun()
		run.Destinations = list
		require.NoError(t, c.Start(run))
		require.Equal(t, "load on "+want+" at amqp://localhost:5672\n", out.String())
		require.NoError(t, c.Summary(summary(stats.Counters{}, closedLoop())))
		require.Contains(t, strings.Join(strings.Fields(out.String()), " "), ", amqp "+want+" ")
	}
}

// Each of several steps has a line.
func TestShortSteps(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	f := fakeSteps(t, 3, 2, 1)
	f.feed(t, nil, NewShort(&out, ConsoleOptions{}))
	golden(t, "short-steps.txt", out.String())
	require.LessOrEqual(t, strings.Count(out.String(), "\n"), shortLines)
}

// A terminal shows one line that is overwritten, and colors only on request.
func TestShortOnATerminal(t *testing.T) {
	t.Parallel()
	columns := 120
	for _, ascii := range []bool{false, true} {
		var out bytes.Buffer
		c := NewShort(&out, ConsoleOptions{Terminal: true, Columns: func() int { return columns }, Length: time.Minute, ASCII: ascii})
		require.NoError(t, c.Start(clientRun()))
		s := snapshot(stats.Measure, 1, stats.Counters{result.Sent: 27640, result.Completed: 27578, result.Received: 26457}, openLoop())
		line := " 3%  2.0 s, 58 s left  sent 27.4k/s  received 26.2k/s  p99 1.00 s  in flight 62"
		for _, columns = range []int{120, 80} {
			want := cut(line, columns-1)
			if ascii {
				want = ASCII(want)
				require.Equal(t, strings.ToValidUTF8(want, "?"), want)
			}
			out.Reset()
			require.NoError(t, c.Interval(s))
			require.Equal(t, want, strings.TrimPrefix(out.String(), "\r\x1b[K"))
		}
		c.options.ShowLatency = true
		require.Contains(t, c.status(s), "  p50 502 ms  p99 1.00 s  max 1.00 s  ")
	}
}

// The color of the verdict is that of its mark: neither an outage nor an interruption is green.
func TestShortColors(t *testing.T) {
	t.Parallel()
	runs := shortRuns()
	runs["outage"], runs["interrupted"], runs["threshold"] = shortRuns()["success"], shortRuns()["success"], shortRuns()["success"]
	runs["outage"].Outages = []result.Outage{{Time: 1, Length: 40_000_000, Reconnected: 1, InDoubt: 15, Class: "connect", Error: "refused"}}
	runs["interrupted"].Outcome.Interrupted = true
	runs["threshold"].Thresholds = fakeThresholds()
	for name, want := range map[string]string{
		"success": "\x1b[1;42;30m  SUCCESS  \x1b[0m\n", "failure": "\x1b[1;41;97m  FAILED  \x1b[0m\n", "threshold": "\x1b[1;41;97m  THRESHOLD FAILED  \x1b[0m\n",
		"outage":      "\x1b[1;43;30m  SUCCESS  \x1b[0m after 1 outage of 40 s: 0 missing, 15 in doubt\n",
		"interrupted": "\x1b[1;43;30m  INTERRUPTED  \x1b[0m\n",
	} {
		var out bytes.Buffer
		require.NoError(t, NewShort(&out, ConsoleOptions{Terminal: true, Color: true}).Summary(runs[name]))
		require.True(t, strings.HasPrefix(out.String(), want), "%q", out.String())
	}
}

// TestShortNamesEachFailure: the lines of problems and failed thresholds have no limit.
func TestShortNamesEachFailure(t *testing.T) {
	t.Parallel()
	s := shortRuns()["failure"]
	var problems []string
	for i := range 30 {
		problems = append(problems, fmt.Sprintf("problem %d", i))
	}
	s.Findings = said(problems)
	var out bytes.Buffer
	require.NoError(t, NewShort(&out, ConsoleOptions{Terminal: true}).Summary(s))
	for _, problem := range problems {
		require.Contains(t, out.String(), "problem   "+problem+"\n")
	}
	require.Contains(t, out.String(), "FAILED, ")
}

// TestHistogram: each bar has the messages up to its time, and above that of the bar before.
func TestHistogram(t *testing.T) {
	t.Parallel()
	l := result.NewLatency()
	for us, n := range map[int]int{100: 60, 110: 30, 500: 9, 10_000: 1} {
		for range n {
			l.Record(time.Duration(us) * time.Microsecond)
		}
	}
	want := []string{
		"",
		"ack          220 µs  ██████████████████████████████████████████████  90.00 %",
		"             460 µs                                                   0.00 %",
		"            1.00 ms  ████▋                                            9.00 %",
		"            2.20 ms                                                   0.00 %",
		"            4.60 ms                                                   0.00 %",
		"            10.0 ms  ▋                                                1.00 %",
	}
	require.Equal(t, want, histogram("ack", l, 6))
	require.Nil(t, histogram("ack", l, leastBars-1), "no room")
	require.Nil(t, histogram("ack", spread(0), 6), "all are equal")
}

// With an interval, lines and blocks cover that many seconds, and never two phases.
func TestPaced(t *testing.T) {
	t.Parallel()
	var short, console bytes.Buffer
	for _, r := range []Reporter{
		Paced(NewShort(&short, ConsoleOptions{Lines: true}), 2*time.Second), Paced(NewConsole(&console, ConsoleOptions{}), 2*time.Second),
	} {
		require.NoError(t, r.Start(clientRun()))
		for i, phase := range []stats.Phase{stats.Warmup, stats.Measure, stats.Measure, stats.Measure, stats.Measure, stats.Measure, stats.Drain} {
			n := uint64(1010 * (i + 1))
			require.NoError(t, r.Interval(snapshot(phase, i, stats.Counters{result.Sent: n, result.Completed: n, result.Received: n}, closedLoop())))
		}
		require.NoError(t, r.Summary(shortRuns()["success"]))
	}
	got := strings.Split(short.String(), "\n")
	for i, want := range []string{
		"1.0 s  warmup  sent 1000/s", "3.0 s  sent 2500/s", "5.0 s  sent 4500/s", "6.1 s  sent 6000/s", "7.1 s  drain  sent 7000/s", "SUCCESS",
	} {
		require.True(t, strings.HasPrefix(got[i], want), "%q", got[i])
	}
	require.Equal(t, 5, strings.Count(console.String(), "--- warmup "))
	require.Contains(t, console.String(), "--- sent:          2500 msg/sec\n")
}

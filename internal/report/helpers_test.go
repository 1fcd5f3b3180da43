package report

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/leaktest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

//go:generate go test . -short -count=1 -update

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { leaktest.Main(m) }

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to write it")
	require.Equal(t, string(want), text)
}

// loadStart is not a whole second, so that tests find times cut to seconds.
func loadStart() time.Time { return time.Date(2026, 11, 21, 10, 30, 54, 535_000_000, time.UTC) }

// latency holds the values 1 to n times step.
func latency(n int, step time.Duration) *result.Latency {
	l := result.NewLatency()
	for i := 1; i <= n; i++ {
		l.Record(time.Duration(i) * step)
	}
	return l
}

func clientRun() stats.Run {
	return stats.Run{
		Producing: true, Consuming: true, Start: loadStart(), Warmup: time.Second,
		Protocol: "amqp", ConsumerProtocol: "amqp", Client: "native", ConsumerClient: "native", Destinations: []string{"queue://TEST"},
	}
}

// snapshot is the second number n (from 0) of a run, a little longer than a second each.
func snapshot(phase stats.Phase, n int, delta stats.Counters, l result.Latencies) *stats.Snapshot {
	length := 1010 * time.Millisecond
	from := loadStart().Add(time.Duration(n) * length)
	s := between("load", phase, from, from.Add(length), delta, l)
	s.InFlight = delta.InFlight()
	s.Tester.CPU = 300_000
	return s
}

// between is an interval of a run of both roles.
func between(step string, phase stats.Phase, from, to time.Time, delta stats.Counters, l result.Latencies) *stats.Snapshot {
	l.Seal()
	length := to.Sub(from).Microseconds()
	return &stats.Snapshot{From: from, To: to, Total: delta.Counts(true, true), Row: result.Row{
		Step: step, Phase: phase.String(), Time: to.UnixMicro(), Elapsed: to.Sub(loadStart()).Microseconds(), Length: max(1, length),
		Counts: delta.Counts(true, true), Latencies: l, Workers: 2, Tester: result.Tester{CPU: 100_000, Wall: length, Cores: 2},
	}}
}

func closedLoop() result.Latencies {
	return result.Latencies{result.Ack: latency(200, time.Microsecond), result.Transfer: latency(100, 30*time.Microsecond)}
}

func openLoop() result.Latencies {
	l := closedLoop()
	l[result.Delay], l[result.Response] = latency(50, 500*time.Microsecond), latency(20, 50*time.Millisecond)
	return l
}

func summary(total stats.Counters, l result.Latencies) *stats.Summary {
	l.Seal()
	s := &stats.Summary{Sends: true, Receives: true, Result: result.Result{
		Complete: true, Outcome: result.Outcome{Success: true, Reason: "duration reached"}, Total: total.Counts(true, true), Measured: new(stats.Counters{}.Counts(true, true)),
		End: loadStart().Add(10 * time.Second).UnixMicro(), Latencies: l, Tester: result.Tester{CPU: 5_000_000, Wall: 10_000_000, Cores: 2},
	}}
	s.Start = loadStart().UnixMicro()
	return s
}

// brokenRun is a client run with every kind of failure.
func brokenRun() *stats.Summary {
	s := summary(brokenCounts(), openLoop())
	s.Outcome.Success, s.Outcome.Reason = false, "the broker closed the connection of producer-0"
	s.Expected, s.Missing = new(uint64(1_216_020)), new(uint64(27))
	s.Tester.LateExcused, s.Tester.ClockBackward = 34, 1_500_000
	s.Tester.Pauses, s.Tester.PauseMax = 2, 1_001_000
	s.Outcome.LeftBehind = []string{"durable subscription perfmq-1 on topic://A"}
	s.Limit = &result.Limit{
		Kind: result.LimitProcessors, Share: 0.75, Text: "it used 97% of the 2 that it may use", Hint: "use more hosts, or larger messages",
	}
	s.Findings = said([]string{"10 sends failed", "broker said:\n\tqueue <full>\x1b[31m & closed"},
		"the tester was the bottleneck: it used 97% of its processors")
	return s
}

func brokenCounts() stats.Counters {
	total := stats.Counters{
		result.Sent: 1_216_053, result.Blocked: 845, result.NoLeave: 45, result.SocketWaits: 12, result.Completed: 1_216_020, result.Rejected: 20, result.Failed: 10, result.Unconfirmed: 3,
		result.Received: 1_216_000, result.Redelivered: 7, result.Unstamped: 2, result.Foreign: 5, result.NegativeTransfers: 4, result.OutOfRange: 1, result.LateSends: 1234, result.Paused: 11,
	}
	total.Failures(driver.Rejected)[driver.ClassFull] = 15
	total.Failures(driver.Rejected)[driver.ClassTooLarge] = 5
	total.Failures(driver.Failed)[driver.ClassTimeout] = 9 // the tenth is unclassified
	total.Failures(driver.Unknown)[driver.ClassConnectionLost] = 3
	return total
}

// said returns findings with these texts.
func said(problems []string, warnings ...string) (list []result.Finding) {
	for _, text := range problems {
		list = append(list, result.Finding{Kind: "failed", Severity: result.Problem, Count: 1, Failure: true, Text: text})
	}
	for _, text := range warnings {
		list = append(list, result.Finding{Kind: "pause", Severity: result.Warning, Count: 1, Text: text})
	}
	return list
}

// ownRun is a run with a stall of a second, over a protocol with b2c and s2c times and counters of its own.
func ownRun() *stats.Summary {
	total := stats.Counters{result.Sent: 1000, result.Completed: 999, result.Failed: 1, result.Unsent: 1, result.Received: 999, result.NegativeAges: 3}
	total.Failures(driver.Failed)[driver.ClassConnect] = 1
	l := closedLoop()
	l[result.B2C], l[result.S2C] = latency(50, time.Millisecond), latency(40, time.Millisecond)
	s := summary(total, l)
	s.Outcome.Success, s.Limit = false, &result.Limit{Kind: result.LimitNone, Share: 1, Text: "the rate was reached"}
	s.Minimum = stats.Peaks{
		Completed: result.Extreme{Seconds: 8, Time: loadStart().Add(7 * time.Second).UnixMicro(), Elapsed: (7 * time.Second).Microseconds()},
		Received:  result.Extreme{Seconds: 8, PerSecond: 27.9, Time: loadStart().Add(7999 * time.Millisecond).UnixMicro(), Elapsed: (7999 * time.Millisecond).Microseconds()},
	}
	s.Counters = []driver.Counter{{Name: "tx-checks", Help: "check-backs", Value: 12}, {Name: "odd\nname"}}
	return s
}

// numbersRun is a run that missed its rate by a hundredth, with three producers and four consumers.
func numbersRun() *stats.Summary {
	s := summary(stats.Counters{result.Sent: 8910, result.Completed: 8900, result.Received: 8000}, openLoop())
	s.Average = stats.Average{Span: 9 * time.Second, Sent: 7920, Completed: 7911, Received: 7200, CompletedBytes: 7911 * 1024, ReceivedBytes: 7200 * 1024}
	s.Offered = stats.Offered{Due: 8000, Sent: 7920, Span: 8 * time.Second, Rate: 1000}
	s.Minimum.Completed = result.Extreme{Seconds: 8, PerSecond: 870, Time: loadStart().Add(3 * time.Second).UnixMicro(), Elapsed: (3 * time.Second).Microseconds()}
	s.Maximum.Completed = result.Extreme{Seconds: 8, PerSecond: 1012.4, Time: loadStart().Add(5 * time.Second).UnixMicro(), Elapsed: (5 * time.Second).Microseconds()}
	s.Maximum.Received = result.Extreme{Seconds: 8, PerSecond: 999.6, Time: loadStart().Add(6 * time.Second).UnixMicro(), Elapsed: (6 * time.Second).Microseconds()}
	s.Tester.Memory, s.Tester.MemoryPeak = 40_000_000, 45_200_000
	for i, n := range []uint64{3000, 2900, 3000} {
		s.Workers = append(s.Workers, result.Worker{Name: fmt.Sprintf("producer-%d", i), Counts: result.Counts{Producers: &result.Producers{Completed: n}}})
	}
	for i, n := range []uint64{1203, 990, 812, 4995} {
		s.Workers = append(s.Workers, result.Worker{Name: fmt.Sprintf("consumer-%d", i), Counts: result.Counts{Consumers: &result.Consumers{Received: n}}})
	}
	s.Find("stall", "both", 1, "the broker stalled", "once", "1.1 s", "at 2.468 s (12:00:02) for 1.100 s")
	s.Find("stall", "send", 4, "the broker did not answer", "4 times", "1.1 s", "at 1.234 s (12:00:01) for 1.100 s")
	for i, side := range []string{stats.SendSide, stats.BothSides, stats.SendSide, stats.SendSide, stats.SendSide} {
		s.Stalls = append(s.Stalls, result.Stall{
			Side: side, Time: s.Start + int64(i+1)*1_234_000, Elapsed: int64(i+1) * 1_234_000, Length: 1_100_000,
		})
	}
	return s
}

// fakeThresholds returns a kept and a broken threshold.
func fakeThresholds() (list []result.Threshold) {
	for i, text := range []string{"ack.p99 < 50ms", "failed == 0"} {
		t, err := threshold.Parse(text)
		if err != nil {
			panic(err)
		}
		o := t.Judge(float64(990*(i+1)/2), 0)
		o.Measured, o.Kept = new(float64), i == 0
		*o.Measured = float64(990 * (i + 1) / 2)
		list = append(list, o)
	}
	return list
}

package report

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
)

// fakeRun is a run as reporters get it from the engine.
type fakeRun struct {
	run       stats.Run
	snapshots []*stats.Snapshot
	summary   *stats.Summary
}

// fakeSteps returns a scenario of three steps with the given lengths: allout (its first second is a warm-up), paced
// (with failed messages) and drain (it only receives). Each ends with a drain of 50 ms, in which allout receives a
// message.
func fakeSteps(t *testing.T, seconds ...int) *fakeRun {
	t.Helper()
	run := clientRun()
	run.Scenario, run.Steps = "night", []string{"allout", "paced", "drain"}
	run.Labels = map[string]string{"broker": "Artemis 2.56", "heap-size": "4g", "empty": ""}
	f := &fakeRun{run: run, summary: summary(stats.Counters{}, noLatencies())}
	var whole, wholeMeasured stats.Counters
	at := loadStart()
	for i, name := range run.Steps {
		sends := name != "drain"
		step := stats.Summary{Name: name, Sends: sends, Receives: true}
		step.Outcome.Reason, step.Start, step.Latencies = "duration reached", at.UnixMicro(), noLatencies()
		var total, measured stats.Counters
		begin := at
		play := func(phase stats.Phase, length time.Duration, delta stats.Counters, l result.Latencies) {
			whole, total = whole.Add(delta), total.Add(delta)
			s := between(name, phase, at, at.Add(length), delta, l)
			s.Total, s.InFlight = whole.Counts(true, true), whole.InFlight()
			f.snapshots, at = append(f.snapshots, s), s.To
			if phase == stats.Warmup {
				return
			}
			wholeMeasured, measured = wholeMeasured.Add(delta), measured.Add(delta)
			f.summary.Latencies.Merge(l)
			step.Latencies.Merge(l)
			if phase == stats.Measure {
				step.Average.Span += length
				step.Average.Sent += delta[result.Sent]
				step.Average.Completed += delta[result.Completed]
				step.Average.Received += delta[result.Received]
			}
		}
		for second := range seconds[i] {
			phase := stats.Measure
			if i == 0 && second == 0 {
				phase = stats.Warmup
			}
			delta, l := fakeSecond(i, second)
			play(phase, 1001*time.Millisecond, delta, l)
		}
		step.Loaded = at.Sub(begin)
		last := stats.Counters{}
		if i == 0 {
			last[result.Received] = 1
		}
		play(stats.Drain, 50*time.Millisecond, last, noLatencies())
		step.End = at.UnixMicro()
		step.Total, step.Measured = total.Counts(true, true), new(measured.Counts(true, true))
		step.Tester = result.Tester{CPU: 1_000_000, Wall: step.End - step.Start, Cores: 2}
		step.Minimum = stats.Peaks{Completed: result.Extreme{Seconds: seconds[i], PerSecond: 7, Time: at.UnixMicro(), Elapsed: time.Second.Microseconds()}}
		step.Latencies.Seal()
		step.Groups = fakeGroups(&step, total, measured)
		f.summary.Ended = append(f.summary.Ended, step)
	}
	f.summary.Ended[2].Outcome.Reason = "drained"
	f.summary.Ended[0].Limit = &result.Limit{
		Kind: result.LimitMaxPending, Share: 1, Text: "97% of sends waited for an answer", Hint: "try --max-pending 100",
	}
	f.summary.Ended[1].Limit = &result.Limit{Kind: result.LimitNone, Share: 1, Text: "the rate was reached"}
	f.summary.Limit = new(*f.summary.Ended[0].Limit)
	f.summary.Limit.Text = "step allout: " + f.summary.Limit.Text
	f.summary.End = at.UnixMicro()
	f.summary.Total, f.summary.Measured = whole.Counts(true, true), new(wholeMeasured.Counts(true, true))
	f.summary.Latencies.Seal()
	f.demand(t, "", "lost == 0", nil)
	kept := 199.0
	f.demand(t, "paced", "ack.p99 < 50ms", &kept)
	three := 3
	f.summary.Commands = []result.Command{
		{Step: "allout", When: "before", Command: "start-broker 4g", Took: 1_234_000, Status: new(int), Output: "started\n"},
		{Step: "paced", When: "after", Command: "check\n  the log", Status: &three, Took: 1000, Output: "1\n2\n\n3\r\n4\n  5 \x1b[2Jred\n6\nlast \u202e"},
		{Step: "drain", When: "after", Command: "killed", Took: 10_000_000},
	}
	f.summary.Findings = said(nil, "step paced: the rate of group load was not reached")
	return f
}

// fakeGroups returns the groups of a step: senders and readers, or only readers.
func fakeGroups(s *stats.Summary, total, measured stats.Counters) []stats.Summary {
	senders := stats.Summary{Name: "senders", Sends: true, Due: s.Due, Result: result.Result{
		Total: total.Counts(true, false), Measured: new(measured.Counts(true, false)),
		Latencies: result.Latencies{result.Delay: s.Latencies[result.Delay], result.Ack: s.Latencies[result.Ack], result.Response: s.Latencies[result.Response]},
	}, Rates: stats.Rates{Minimum: stats.Peaks{Completed: s.Minimum.Completed}, Average: s.Average}}
	readers := stats.Summary{Name: "readers", Receives: true, Result: result.Result{
		Total: total.Counts(false, true), Measured: new(measured.Counts(false, true)),
		Latencies: result.Latencies{result.Transfer: s.Latencies[result.Transfer]},
	}, Rates: stats.Rates{Average: s.Average}}
	if !s.Sends {
		return []stats.Summary{readers}
	}
	return []stats.Summary{senders, readers}
}

// fakeSecond returns the figures of a second of a step; both indexes begin at 0.
func fakeSecond(step, second int) (stats.Counters, result.Latencies) {
	l := noLatencies()
	l[result.Transfer] = latency(20, time.Duration(step+1)*time.Millisecond)
	if step == 2 {
		return stats.Counters{result.Received: 500}, l
	}
	l[result.Ack] = latency(10, time.Duration(step+1)*100*time.Microsecond)
	l[result.Delay], l[result.Response] = latency(5, time.Microsecond), latency(10, time.Duration(step+1)*110*time.Microsecond)
	c := stats.Counters{result.Sent: 1000, result.Blocked: 3, result.Completed: 1000, result.Received: 900}
	if step == 1 && second == 0 {
		c[result.Completed], c[result.Failed] = 998, 2
		c.Failures(driver.Failed)[driver.ClassTimeout] = 2
	}
	return c, l
}

func noLatencies() result.Latencies {
	return result.Latencies{result.Delay: result.NewLatency(), result.Ack: result.NewLatency(), result.Response: result.NewLatency(), result.Transfer: result.NewLatency()}
}

// demand adds a threshold of a step, or of the run if step is empty.
func (f *fakeRun) demand(t *testing.T, step, text string, measured *float64) {
	t.Helper()
	parsed := musttest.Get(threshold.Parse(text))(t)
	values := map[string]float64{}
	if measured != nil {
		values[parsed.Metric.Name] = *measured
	}
	o := threshold.Judge([]threshold.Threshold{parsed}, func(string) float64 { return 0 }, values)[0]
	o.Step, o.Kept = step, measured != nil
	f.summary.Thresholds = append(f.summary.Thresholds, o)
	for i := range f.summary.Ended {
		if f.summary.Ended[i].Name == step {
			f.summary.Ended[i].Thresholds = append(f.summary.Ended[i].Thresholds, o)
		}
	}
}

// feed passes the run to reporters through a Fan.
func (f *fakeRun) feed(t *testing.T, secrets *safetext.Secrets, reporters ...Reporter) {
	t.Helper()
	fan := NewFan(reporters...)
	if secrets != nil {
		fan.Secrets = secrets
	}
	require.NoError(t, fan.Start(f.run))
	for _, s := range f.snapshots {
		require.NoError(t, fan.Interval(s))
	}
	require.NoError(t, fan.Summary(f.summary))
}

func TestConsoleSteps(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	fakeSteps(t, 3, 2, 1).feed(t, nil, NewConsole(&out, ConsoleOptions{ShowLatency: true}))
	golden(t, "console-steps.txt", out.String())
}

func TestResultSteps(t *testing.T) {
	t.Parallel()
	r, dir := newTestResult(t, ResultOptions{})
	f := fakeSteps(t, 3, 2, 1)
	f.feed(t, nil, r)
	require.NoError(t, r.Close())
	resulttest.Compile(t, result.Schema(), result.SchemaID).Validate(t, dir)
	got := musttest.Get(result.ReadHistograms(dir))(t)
	require.Empty(t, got.Outcome.Warnings[1:], "the rows add up to their steps")
	var steps []string
	for i := range got.Rows {
		steps = append(steps, got.Rows[i].Step)
	}
	assert.Equal(t, strings.Fields("allout allout allout allout paced paced paced drain drain"), steps)
}

// writeStepsHDR writes the log of a run of three steps.
func writeStepsHDR(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "steps.hdr")
	h := musttest.Get(NewHDR(path))(t)
	fakeSteps(t, 3, 2, 1).feed(t, nil, h)
	require.NoError(t, h.Close())
	return path
}

package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
)

// newTestResult returns a reporter with a small plan, and its folder.
func newTestResult(t *testing.T, options ResultOptions) (*Result, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "result")
	options.Head.Plan = json.RawMessage(`{"rate":1000}`)
	options.Head.Versions = result.Versions{Perfmq: "v0.0.0", Go: "go1"}
	r := musttest.Get(NewResult(dir, options))(t)
	return r, dir
}

// brokenResult is brokenRun with all figures that only a result has.
func brokenResult() *stats.Summary {
	s := brokenRun()
	s.Errors = []result.Failure{{Class: driver.ClassTimeout.String(), Count: 9, Examples: []string{"no answer within 30s"}}, {Class: driver.ClassFull.String(), Count: 15}}
	s.Workers = []result.Worker{
		{Name: "producer-0", Destination: "queue://A", Counts: result.Counts{Producers: &result.Producers{Sent: 7, Completed: 6, Failed: 1}}},
		{Name: "consumer-0", Destination: "queue://A", Counts: result.Counts{Consumers: &result.Consumers{Received: 6}}},
	}
	v := &verify.Result{
		Verification: result.Verification{
			Known: true, Sent: 1000, Total: result.Verified{Expected: 990, Lost: 2, Duplicates: 3}, Unwatched: []string{"topic://U"},
		},
		Scopes: []verify.Scope{{
			Subscription: scope("topic://A", "s", result.Verified{Expected: 990, Lost: 2, Duplicates: 3}),
			Examples:     map[verify.Kind][]verify.Message{verify.Lost: {{Producer: 1, Number: 12}, {Producer: 0, Number: 7}}},
		}},
	}
	s.Verified, s.Verification = v, v.Verified()
	return s
}

// TestStallsBeyondTheList: they are counted.
func TestStallsBeyondTheList(t *testing.T) {
	s := brokenRun()
	s.Stalls = make([]result.Stall, maxStalls+7)
	out := new(recorder).whole(s, "")
	require.Len(t, out.Stalls, maxStalls)
	require.EqualValues(t, 7, out.MoreStalls)
}

// A result has every number of the snapshots and the summary, and its schema describes it.
func TestResult(t *testing.T) {
	t.Parallel()
	r, dir := newTestResult(t, ResultOptions{ClientVersion: func(string) string { return "v9" }})
	run := clientRun()
	run.ID, run.ConsumerClient = 1<<62+1, "go-amqp"
	require.NoError(t, r.Start(run))
	one := stats.Counters{result.Sent: 300, result.Completed: 200, result.Received: 190}
	two := stats.Counters{result.Sent: 100, result.Blocked: 9, result.NoLeave: 4, result.Completed: 199, result.Rejected: 1, result.Received: 209}
	two.Failures(driver.Rejected)[driver.ClassFull] = 1
	first, second := snapshot(stats.Warmup, 0, one, openLoop()), snapshot(stats.Measure, 1, two, openLoop())
	second.Leftover = &result.Latencies{result.Transfer: latency(3, time.Millisecond)}
	second.Leftover.Seal()
	second.Verified = &result.Progress{Received: 400, Duplicates: 1}
	second.Tester.Memory, second.InFlight = 30<<20, 0
	require.NoError(t, r.Interval(first))
	require.NoError(t, r.Interval(second))
	s := brokenResult()
	s.Total.Producers.NoLeave = 4
	rest := brokenCounts()
	rest[result.NoLeave] = 4
	last := snapshot(stats.Drain, 2, rest.Sub(one).Sub(two), openLoop()) // the rows add up to the total
	require.NoError(t, r.Interval(last))
	require.NoError(t, r.Summary(s))
	require.NoError(t, r.Close())

	resulttest.Compile(t, result.Schema(), result.SchemaID).Validate(t, dir)
	got := musttest.Get(result.ReadHistograms(dir))(t)
	assert.Equal(t, "4611686018427387905", got.RunID)
	assert.Equal(t, loadStart().UnixMicro(), got.Start)
	assert.EqualValues(t, 1_000_000, got.Warmup)
	assert.Equal(t, []result.Client{
		{Role: "producers", Protocol: "amqp", Name: "native"}, {Role: "consumers", Protocol: "amqp", Name: "go-amqp", Version: "v9"},
	}, got.Versions.Clients)

	require.Len(t, got.Rows, 3)
	row := &got.Rows[1]
	assert.Equal(t, "measure", row.Phase)
	assert.Equal(t, second.To.UnixMicro(), row.Time)
	assert.EqualValues(t, 2_020_000, row.Elapsed)
	assert.EqualValues(t, 1_010_000, row.Length)
	assert.Equal(t, &result.Producers{
		Sent: 100, Blocked: 9, NoLeave: 4, Completed: 199, Rejected: 1, Failures: map[string]map[string]uint64{"rejected": {"full": 1}},
	}, row.Producers)
	assert.EqualValues(t, 209, row.Consumers.Received)
	assert.Equal(t, &result.Progress{Received: 400, Duplicates: 1}, row.Verified)
	assert.EqualValues(t, 30<<20, row.Tester.Memory)
	assert.EqualValues(t, 300_000, row.Tester.CPU)
	for _, l := range []struct {
		want *result.Latency
		got  *result.Latency
	}{
		{second.Latencies[result.Delay], row.Latencies[result.Delay]},
		{second.Latencies[result.Ack], row.Latencies[result.Ack]},
		{second.Latencies[result.Response], row.Latencies[result.Response]},
		{second.Latencies[result.Transfer], row.Latencies[result.Transfer]},
		{second.Leftover[result.Transfer], row.Leftover[result.Transfer]},
		{s.Latencies[result.Response], got.Latencies[result.Response]},
		{s.Latencies[result.Ack], got.Steps[0].Latencies[result.Ack]},
	} {
		requireSameLatency(t, l.want, l.got)
	}

	assert.Equal(t, s.Total.Get(result.Sent), got.Total.Producers.Sent)
	assert.Equal(t, s.Total.Get(result.Received), got.Total.Consumers.Received)
	assert.Equal(t, map[string]uint64{"timeout": 9, "none": 1}, got.Total.Producers.Failures["failed"])
	assert.Equal(t, result.Outcome{
		Status: 1, Reason: s.Outcome.Reason, Problems: s.Problems(), Warnings: s.Warnings(), LeftBehind: s.Outcome.LeftBehind,
	}, got.Outcome)
	assert.Equal(t, []result.Failure{
		{Class: "timeout", Count: 9, Examples: []string{"no answer within 30s"}}, {Class: "full", Count: 15},
	}, got.Errors)
	assert.EqualValues(t, 6, got.Workers[0].Producers.Completed)
	assert.Nil(t, got.Workers[0].Consumers)
	assert.EqualValues(t, 6, got.Workers[1].Consumers.Received)
	assert.EqualValues(t, 990, got.Verification.Total.Expected)

	assert.Equal(t, s.Findings, got.Findings)
}

func requireSameLatency(t *testing.T, want *result.Latency, got *result.Latency) {
	t.Helper()
	require.Equal(t, []int64{want.Count, want.Sum, want.Max}, []int64{got.Count, got.Sum, got.Max})
	for _, p := range []float64{50, 90, 99, 99.9, 99.99, 100} {
		require.Equal(t, want.Percentile(p), got.Percentile(p), p)
	}
	require.Equal(t, want.Percentile(99.9), got.P999)
}

// TestResultOfNoRun: if another output cannot begin, there is no load, and the folder is free for the next one.
func TestResultOfNoRun(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "result")
		if made {
			require.NoError(t, os.Mkdir(dir, 0o700))
		}
		var calls []string
		r := musttest.Get(NewResult(dir, ResultOptions{}))(t)
		f := NewFan(r, &scripted{"console", []string{"start"}, &calls})
		require.EqualError(t, f.Start(clientRun()), "console cannot start")
		require.NoError(t, f.Close())
		if made {
			files := musttest.Get(os.ReadDir(dir))(t)
			require.Empty(t, files)
		} else {
			require.NoDirExists(t, dir)
		}
		r = musttest.Get(NewResult(dir, ResultOptions{}))(t)
		require.NoError(t, r.Close())
	}
}

// A run that did not begin leaves no files, and an existing result is not overwritten.
func TestResultFolder(t *testing.T) {
	t.Parallel()
	r, dir := newTestResult(t, ResultOptions{})
	require.NoError(t, r.Close())
	require.NoDirExists(t, dir)
	r = musttest.Get(NewResult(dir, ResultOptions{}))(t)
	require.NoError(t, r.Start(clientRun()))
	require.NoError(t, r.Close())
	_, err := NewResult(dir, ResultOptions{})
	require.ErrorIs(t, err, result.ErrExists)
	require.Equal(t, "name another folder, or remove this one", driver.HintOf(err))
}

// Texts of a broker or a user lose the secrets of the run on their way into a result.
func TestResultWithoutSecrets(t *testing.T) {
	t.Parallel()
	r, dir := newTestResult(t, ResultOptions{})
	fan := NewFan(r)
	fan.Secrets = &safetext.Secrets{}
	fan.Secrets.Add("u", "hunter2")
	require.NoError(t, fan.Start(clientRun()))
	s := brokenResult()
	s.Errors[0].Examples = []string{"password hunter2 is wrong"}
	s.Workers[0].Destination = "queue://hunter2"
	s.Findings[0].Text, s.Verification.Subscriptions[0].Destination = "hunter2", "topic://hunter2"
	require.NoError(t, fan.Summary(s))
	require.NoError(t, fan.Close())
	text := musttest.Get(os.ReadFile(filepath.Join(dir, result.ResultFile)))(t)
	require.NotContains(t, string(text), "hunter2")
	require.Contains(t, string(text), "password *** is wrong")
}

// A password that is also a word of perfmq leaves the rows readable, and the failures counted by their classes.
func TestPasswordLikeAWord(t *testing.T) {
	t.Parallel()
	r, dir := newTestResult(t, ResultOptions{})
	f := fakeSteps(t, 1, 1, 1)
	secrets := &safetext.Secrets{}
	for _, word := range []string{"measure", "timeout", "failed"} {
		secrets.Add("u", word)
	}
	f.feed(t, secrets, r)
	require.NoError(t, r.Close())
	got := musttest.Get(result.Read(dir))(t)
	require.True(t, slices.ContainsFunc(got.Rows, func(r result.Row) bool { return r.Phase == result.Measure }))
	require.Equal(t, map[string]map[string]uint64{"failed": {"timeout": 2}}, got.Total.Producers.Failures)
}

// groupRun returns a run of three seconds; the first is a warm-up. Each second, group i of n sends 10*(i+1) messages
// that take (i+1) ms each, and one of them fails. An additional group receives in the last second.
func groupRun(n int) *fakeRun {
	run := clientRun()
	run.Scenario, run.Steps, run.Warmup = "groups", []string{"load"}, time.Second
	f := &fakeRun{run: run, summary: summary(stats.Counters{}, noLatencies())}
	for i := range n {
		f.run.Groups = append(f.run.Groups, stats.RunGroup{Name: fmt.Sprintf("senders-%d", i), Sends: true})
	}
	f.run.Groups = append(f.run.Groups, stats.RunGroup{Name: "readers", Receives: true})
	totals := make([]stats.Counters, len(f.run.Groups))
	var whole stats.Counters
	for second := range 3 {
		phase, all := stats.Measure, noLatencies()
		if second == 0 {
			phase = stats.Warmup
		}
		var delta stats.Counters
		var rows result.Row
		for i, g := range f.run.Groups {
			var own stats.Counters
			var latencies result.Latencies
			l := result.NewLatency()
			switch {
			case g.Sends:
				sent := uint64(10 * (i + 1))
				own = stats.Counters{result.Sent: sent, result.Completed: sent - 1, result.Failed: 1}
				for range sent - 1 {
					l.Record(time.Duration(i+1) * time.Millisecond)
				}
				latencies[result.Ack] = l
			case second == 2:
				own = stats.Counters{result.Received: 7, result.Redelivered: 2}
				l.Record(3 * time.Second)
				latencies[result.Transfer] = l
			}
			all.Merge(latencies)
			totals[i], delta = totals[i].Add(own), delta.Add(own)
			name := g.Name
			if i >= result.MaxRowGroups {
				name = result.OtherGroups
			}
			if latencies.Seal(); len(f.run.Groups) > 1 && own != (stats.Counters{}) {
				rows.AddGroup(&result.RowGroup{Name: name, Counts: own.Counts(g.Sends, g.Receives), Latencies: &latencies})
			}
		}
		from := loadStart().Add(time.Duration(second) * time.Second)
		s := between("load", phase, from, from.Add(time.Second), delta, all)
		whole = whole.Add(delta)
		s.Total, s.Groups = whole.Counts(true, true), rows.Groups
		f.snapshots = append(f.snapshots, s)
	}
	f.summary.Total = whole.Counts(true, true)
	for i, g := range f.run.Groups {
		f.summary.Groups = append(f.summary.Groups, stats.Summary{
			Name: g.Name, Sends: g.Sends, Receives: g.Receives,
			Result: result.Result{Total: totals[i].Counts(g.Sends, g.Receives), Measured: &result.Counts{}},
		})
	}
	return f
}

// Rows have the counts and latencies of each group that did something; they add up to the row.
func TestRowsOfGroups(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 2, 30} {
		r, dir := newTestResult(t, ResultOptions{})
		f := groupRun(n)
		f.feed(t, nil, r)
		require.NoError(t, r.Close())
		resulttest.Compile(t, result.Schema(), result.SchemaID).Validate(t, dir)
		got := musttest.Get(result.Read(dir))(t)
		require.Len(t, got.Rows, 3)
		for i := range got.Rows {
			row := &got.Rows[i]
			var names []string
			var sent, completed, failed, received uint64
			var acks int64
			for j := range row.Groups {
				g := &row.Groups[j]
				names = append(names, g.Name)
				if p := g.Producers; p != nil {
					sent, completed, failed = sent+p.Sent, completed+p.Completed, failed+p.Failed
					require.Nil(t, g.Latencies[result.Ack].Histogram)
					acks += g.Latencies[result.Ack].Count
				}
				if c := g.Consumers; c != nil {
					received += c.Received
				}
				if j < min(n, result.MaxRowGroups) {
					require.EqualValues(t, 10*(j+1), g.Producers.Sent)
					require.Nil(t, g.Consumers)
					require.EqualValues(t, 1000*(j+1), g.Latencies[result.Ack].Max)
					require.NotNil(t, g.Latencies[result.Ack].Percentiles)
				}
			}
			switch {
			case n == 0:
				require.Empty(t, names, "one group is the row")
				continue
			case n == 2 && i < 2:
				require.Equal(t, []string{"senders-0", "senders-1"}, names, "readers did nothing")
			case n == 2:
				require.Equal(t, []string{"senders-0", "senders-1", "readers"}, names)
				require.EqualValues(t, 2, row.Groups[2].Consumers.Redelivered)
				require.EqualValues(t, 3_000_000, row.Groups[2].Latencies[result.Transfer].Max)
			default:
				require.Len(t, names, result.MaxRowGroups+1)
				require.Equal(t, result.OtherGroups, names[result.MaxRowGroups])
			}
			require.Equal(t, []uint64{row.Producers.Sent, row.Producers.Completed, row.Producers.Failed, row.Consumers.Received},
				[]uint64{sent, completed, failed, received})
			require.Equal(t, row.Latencies[result.Ack].Count, acks)
		}
	}
}

// Each group has its series; groups without a name in rows have none.
func TestPrometheusGroups(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 30} {
		p, url := startPrometheus(t, groupRun(n).run)
		scrape(t, url).require(t, map[string]float64{
			"group_messages_sent_total group=senders-0": 0, "group_sends_failed_total group=senders-0": 0, "group_in_flight group=senders-0": 0,
		})
		f := groupRun(n)
		for _, s := range f.snapshots {
			require.NoError(t, p.Interval(s))
		}
		for _, ended := range []bool{false, true} {
			if ended {
				require.NoError(t, p.Summary(f.summary))
			}
			m := scrape(t, url)
			m.require(t, map[string]float64{
				"group_messages_sent_total group=senders-0": 30, "group_messages_completed_total group=senders-0": 27,
				"group_sends_failed_total group=senders-0": 3, "group_in_flight group=senders-0": 0,
			})
			if n < result.MaxRowGroups {
				m.require(t, map[string]float64{
					"group_messages_received_total group=readers": 7, "group_messages_redelivered_total group=readers": 2, "messages_received_total": 7,
				})
				require.EqualValues(t, 1, m.histograms["perfmq_group_transfer_seconds group=readers phase=measure"].GetSampleCount())
			}
			require.NotContains(t, m.values, "perfmq_group_messages_received_total group=senders-0")
			ack := m.histograms["perfmq_group_send_ack_seconds group=senders-0 phase=measure"]
			require.EqualValues(t, 18, ack.GetSampleCount(), "without the warm-up")
			require.InDelta(t, 0.018, ack.GetSampleSum(), 1e-9)
			series := 0
			for name := range m.values {
				if len(name) > 13 && name[:13] == "perfmq_group_" {
					series++
				}
			}
			require.LessOrEqual(t, series, 6*result.MaxRowGroups)
		}
	}
	// A run with one group, as from a command line, has no metrics per group.
	_, url := startPrometheus(t, groupRun(0).run)
	for name := range scrape(t, url).values {
		require.NotContains(t, name, "perfmq_group_")
	}
}

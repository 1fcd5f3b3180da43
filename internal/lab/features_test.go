//go:build unix

package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
	"github.com/perfmq/perfmq/pkg/result"
)

//go:generate go test . -short -count=1 -update

var update = flag.Bool("update", false, "write the golden files anew")

func TestFeatures(t *testing.T) {
	for _, c := range []struct{ dir, failure string }{
		{"good", ""},
		{"broken", "STOMP on Artemis 1.0: Selector failed"},
	} {
		t.Run(c.dir, func(t *testing.T) {
			dir := filepath.Join("testdata", "features", c.dir)
			list := musttest.Get(readFeatures(dir))(t)
			table := featureTable{results: list}
			text := table.markdown() + "\n" + table.short()
			if c.failure == "" {
				require.NoError(t, table.failures())
			} else {
				require.EqualError(t, table.failures(), c.failure)
			}
			if *update {
				require.NoError(t, os.WriteFile(dir+".md", []byte(text), 0o600))
			}
			want := musttest.Get(os.ReadFile(dir + ".md"))(t)
			require.Equal(t, string(want), text)
		})
	}
	dir := t.TempDir()
	require.ErrorContains(t, run(t.Context(), []string{"features", "-results", dir}), "no results")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte("{"), 0o600))
	require.ErrorContains(t, run(t.Context(), []string{"features", "-results", dir}), "a.json")
}

// TestColumnsAreComplete: a feature that the suite tests has a column.
func TestColumnsAreComplete(t *testing.T) {
	seen := map[drivertest.Feature]bool{}
	for _, r := range featureColumns() {
		require.False(t, seen[r.feature])
		seen[r.feature] = true
	}
	for _, f := range drivertest.Features() {
		require.True(t, seen[f], "no column for %s", f)
	}
	require.Len(t, seen, len(drivertest.Features()))
}

// ofRun is the result of a run that sent and received.
func ofRun(sent, received uint64) *result.Result {
	return &result.Result{
		Complete: true,
		Total:    result.Counts{Producers: &result.Producers{Sent: sent}, Consumers: &result.Consumers{Received: received}},
	}
}

func TestAcceptancePage(t *testing.T) {
	t.Parallel()
	measured := 41.7
	passed := ofRun(10, 9)
	passed.Thresholds = []result.Threshold{{Threshold: "lost == 0", Measured: new(float64), Kept: true}}
	passed.BrokerCount = &result.BrokerCount{Destinations: []result.DestinationCount{{
		Added: &result.Compared{Count: 10, Least: 10, Most: 10}, Acknowledged: &result.Compared{Count: 9, Least: 9, Most: 9},
	}}}
	failed := ofRun(10, 0)
	failed.Thresholds = []result.Threshold{{Step: "one", Threshold: "ack.p99 < 5ms", Measured: &measured}, {Threshold: "x.min > 1"}}
	failed.BrokerCount = &result.BrokerCount{Destinations: []result.DestinationCount{{Added: &result.Compared{Count: 13, Least: 10, Most: 10}}}}
	found := &record.Search{Rate: 900, Above: 1000, Held: true, Complete: true, Failed: record.Point{Rate: 1000, Why: "late"}}
	undecided := &record.Search{Above: 1000, Complete: true, Failed: record.Point{Rate: 1000, Tester: true}, Points: []record.Point{{Rate: 1000, Tester: true}}}
	outcomes := []outcome{
		{scenario: "smoke/a", broker: "B 1", took: 1900 * time.Millisecond, results: []*result.Result{passed}},
		{scenario: "smoke/b", broker: "B 1", status: 3, results: []*result.Result{failed}},
		{scenario: "smoke/c", broker: "B 1", status: 1, output: "error: lost", results: []*result.Result{ofRun(5, 4)}},
		{scenario: "smoke/d", broker: "B 1", results: []*result.Result{passed, ofRun(30, 30)}},
		{scenario: "smoke/e", broker: "B 1", results: []*result.Result{ofRun(0, 0)}},
		{scenario: "smoke/f", broker: "B 1", found: found, results: []*result.Result{ofRun(900, 900), ofRun(1000, 1000)}},
		{scenario: "smoke/g", broker: "B 1", status: 5, found: undecided, results: []*result.Result{ofRun(1000, 1000)}},
	}
	crowded := ofRun(7, 7)
	crowded.Tester = result.Tester{CPU: 1e6, MachineBusy: 19e6, MachineAll: 20e6}
	outcomes = append(outcomes, outcome{scenario: "smoke/h", broker: "B 1", status: 3, results: []*result.Result{crowded}})
	var rows []string
	for i := range outcomes {
		r := outcomes[i].row()
		rows = append(rows, "| "+strings.Join(append(r.Cells, r.Verdict), " | ")+" |")
		require.Equal(t, strings.Contains("smoke/b smoke/c smoke/e", r.Cells[0]), len(r.Mistakes) > 0, r.Cells[0])
		require.Equal(t, r.Cells[0] == "smoke/h", r.State == notJudged, r.Cells[0])
	}
	for _, row := range []string{
		"| smoke/a | B 1 | 2s | 10 | 9 | 1 of 1 | 2 equal | passed |",
		"| smoke/b | B 1 | 0s | 10 | 0 | 0 of 2; failed: one: ack.p99 < 5ms (measured 42), x.min > 1 (nothing measured) | 1 of 1 DIFFER | a threshold failed |",
		"| smoke/c | B 1 | 0s | 5 | 4 | 0 of 0 | not asked | failed, status 1 |",
		"| smoke/d | B 1 | 0s | 40 | 39 | 1 of 1 | 2 equal | passed |",
		"| smoke/e | B 1 | 0s | 0 | 0 | 0 of 0 | not asked | failed: nothing was sent |",
		"| smoke/f | B 1 | 0s | 1900 | 1900 | a search of 2 loads | not asked | maximum: 900 msg/s |",
		"| smoke/g | B 1 | 0s | 1000 | 1000 | a search of 1 loads | not asked | undecided: perfmq was the limit of 1 of 1 loads, and no rate was held |",
		"| smoke/h | B 1 | 0s | 7 | 7 | 0 of 0 | not asked | not judged: the machine was 95% busy, 90% with other programs than perfmq |",
	} {
		require.Contains(t, rows, row)
	}
	require.Equal(t, []string{"failed, status 1\nerror: lost"}, new(outcomes[2].row()).Mistakes)
}

// TestUnfinished: a run that did not come to its end, or has no result, fails.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	good, killed := ofRun(10, 10), ofRun(10, 10)
	killed.Complete = false
	for name, o := range map[string]outcome{
		"no result":         {status: 4},
		"killed":            {results: []*result.Result{killed}},
		"one of a sweep":    {results: []*result.Result{good, killed}},
		"a run of no sweep": {results: []*result.Result{good, new(result.Result)}},
		"a search":          {found: new(record.Search), results: []*result.Result{good}},
	} {
		r := o.row()
		require.Contains(t, r.Verdict, "not finished", name)
		require.Len(t, r.Mistakes, 1, name)
	}
}

// TestRead: the outcome of a sweep has the results of all its runs, the outcome of a search the results of its loads.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var o outcome
	require.NoError(t, o.read(filepath.Join(dir, "nothing")))
	require.False(t, o.finished())

	s := &record.Sweep{Format: record.Format, Version: record.Version, Repeats: 2}
	s.Arrange(record.Cells(nil))
	require.NoError(t, s.Write(dir))
	o = outcome{}
	require.NoError(t, o.read(dir))
	require.Len(t, o.results, 2)
	require.False(t, o.finished())

	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, record.SearchFile), []byte(`{"complete": true, "points": [{"rate": 5}, {"rate": 2}]}`), 0o600))
	o = outcome{}
	require.NoError(t, o.read(dir))
	require.Len(t, o.results, 2)
	require.False(t, o.finished())
}

// calmSoak is a soak test of an hour with a kill and a stop that perfmq reported as they were.
func calmSoak() *soaked {
	began := time.Unix(1000, 0)
	o := &soaked{title: "Artemis", length: time.Hour, result: &result.Result{}}
	for i, name := range []string{"kill", "stop"} {
		at := began.Add(time.Duration(i+1) * 10 * time.Minute)
		o.events = append(o.events, event{name: name, log: harnessLog{
			first: at, last: at.Add(30 * time.Millisecond), lines: []string{name},
		}})
	}
	r := o.result
	r.Outages = []result.Outage{{
		Time: o.events[0].log.first.Add(20 * time.Millisecond).UnixMicro(), Length: 2_400_000, Recovered: 3_000_000, InDoubt: 6,
	}}
	r.Stalls = []result.Stall{{Side: "both", Time: o.events[1].log.first.UnixMicro(), Length: 20_000_000}}
	r.Total.Producers = &result.Producers{Sent: 1000, Completed: 994, Unconfirmed: 6}
	r.Verification = &result.Verification{Total: result.Verified{
		Expected: 994, Received: 994, Once: 994, UnconfirmedMissing: 6, Duplicates: 2, AfterOutage: 2,
	}}
	for s := range int64(3600) { // the tester grows by 2 MiB an hour
		r.Rows = append(r.Rows, result.Row{
			Elapsed: s * 1_000_000, Time: began.Add(time.Duration(s) * time.Second).UnixMicro(),
			Tester: result.Tester{Memory: uint64(64<<20 + s*(2<<20)/3600)}, //nolint:gosec // small
		})
	}
	return o
}

func TestSoak(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*soaked)
		want string // in the only problem; empty for none
	}{
		"as it was":    {func(*soaked) {}, ""},
		"a failed run": {func(o *soaked) { o.status = 3 }, "exit status 3"},
		"two outages":  {func(o *soaked) { o.result.Outages = append(o.result.Outages, result.Outage{}) }, "2 outages, 1 kills"},
		"time-outs while it is stopped": {func(o *soaked) {
			o.events[1].name = "SIGSTOP"
			o.result.Outages = append(o.result.Outages, result.Outage{Time: o.events[1].log.last.Add(10 * time.Second).UnixMicro()})
		}, ""},
		"a late outage":    {func(o *soaked) { o.result.Outages[0].Time += 120_000 }, "nothing begins at kill"},
		"a stop unnoticed": {func(o *soaked) { o.result.Stalls = nil }, "nothing begins at stop"},
		"a slow broker is stopped": {func(o *soaked) {
			o.result.Stalls[0].Time -= 400_000
			for i := range o.result.Rows {
				o.result.Rows[i].Latencies[result.Ack] = &result.Latency{Max: 450_000}
			}
		}, ""},
		"a loss":             {func(o *soaked) { o.result.Verification.Total.Lost = 1 }, "1 lost, 0 left, 0 doubled"},
		"no end":             {func(o *soaked) { o.result.Total.Producers.Sent++ }, "1001 sent, 1000 ended"},
		"left at the broker": {func(o *soaked) { o.left = 3 }, "3 messages are left at the broker, not 0"},
		"stored too few":     {func(o *soaked) { o.lasting, o.left = true, 993 }, "the broker has had 993 messages, not 994"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := calmSoak()
			c.edit(o)
			o.judge()
			if c.want == "" {
				require.Empty(t, o.problems)
				require.Contains(t, o.page(), "agrees with the harness")
				require.Contains(t, o.page(), "memory of perfmq: 64.5 MiB in the second sixth of the load, 65.8 MiB in the last\n")
				return
			}
			require.Len(t, o.problems, 1)
			require.Contains(t, o.problems[0], c.want)
			require.Contains(t, o.page(), "**perfmq is wrong**: "+o.problems[0])
		})
	}
}

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

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
	s.Arrange(record.Cells(nil, nil))
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

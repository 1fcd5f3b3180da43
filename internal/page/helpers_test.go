package page

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

//go:generate go test . -short -count=1 -update

var update = flag.Bool("update", false, "write the golden files")

const second = 1_000_000

func newRun(name string, read *result.Result, runs int) *Run {
	r := &Run{Name: name, of: name}
	r.begin(runs)
	for i := range read.Rows {
		r.add(&read.Rows[i])
	}
	r.Result = r.rated(read)
	return r
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644)) //nolint:gosec // a file of the project
	}
	want := musttest.Get(os.ReadFile(path))(t)
	assert.Equal(t, string(want), got)
}

// load has the figures of a second of a made-up run.
type load struct {
	step, phase              string
	length                   int64 // a second, if it is 0
	sent, completed, receive uint64
	ack                      []int64 // microseconds; transfer is twice that
	backlog                  int64   // -1: unknown
}

// head returns the head of all made-up runs.
func head() result.Head {
	plan := json.RawMessage(`{"steps":[{"name":"load","groups":[{"rate":"100","destination":"queue://TEST"}]}]}`)
	hash, _ := result.Hash(plan) // valid JSON
	return result.Head{
		Format: result.Format, Version: result.Version, RunID: "4711", Start: time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC).UnixMicro(), Warmup: 2 * second,
		Plan: plan, PlanHash: hash, Labels: map[string]string{"heap": "4g"},
		Versions: result.Versions{Perfmq: "v0.9.0", Go: "go1.26.8", Clients: []result.Client{{Role: "producers", Protocol: "amqp", Name: "native"}}},
		Host:     result.Host{Name: "host-1", OS: "linux", Arch: "amd64", CPUs: 2, Memory: 8 << 30},
	}
}

func latencyOf(us []int64, times int64) *result.Latency {
	all := result.Latencies{result.Ack: result.NewLatency()}
	for _, v := range us {
		all[result.Ack].Record(time.Duration(v*times) * time.Microsecond)
	}
	all.Seal()
	return all[result.Ack]
}

// rowsOf returns the rows of a made-up run.
func rowsOf(loads []load) (rows []result.Row) {
	var at int64
	start := head().Start
	for _, l := range loads {
		length := l.length
		if length == 0 {
			length = second
		}
		at += length
		row := result.Row{
			Step: l.step, Phase: l.phase, Time: start + at, Elapsed: at, Length: length, InFlight: l.sent - min(l.sent, l.completed), Workers: 2,
			Counts: result.Counts{
				Producers: &result.Producers{Sent: l.sent, Completed: l.completed}, Consumers: &result.Consumers{Received: l.receive},
			},
			Latencies: result.Latencies{result.Ack: latencyOf(l.ack, 1), result.Transfer: latencyOf(l.ack, 2)},
			Tester:    result.Tester{CPU: length / 4, Cores: 2, Memory: 40e6, MachineBusy: length, MachineAll: 2 * length},
		}
		if l.backlog >= 0 {
			n := uint64(l.backlog)
			row.Backlog = &n
		}
		rows = append(rows, row)
	}
	return rows
}

// resultOf returns the result of a made-up run as perfmq writes it, with rates from its rows.
func resultOf(t *testing.T, loads []load) *result.Result {
	t.Helper()
	rows := rowsOf(loads)
	r := result.NewSum(head())
	for i := range rows {
		r.AddRow(&rows[i])
	}
	r.Rows, r.Complete = rows, true
	r.Outcome = result.Outcome{Success: true, Reason: "duration reached"}
	r.Limit = &result.Limit{Kind: result.LimitNone, Share: 1, Text: "the rate was reached"}
	run := &Run{series: &series{limit: 1}}
	for i := range rows {
		run.add(&rows[i])
	}
	r = run.rated(r)
	r.Rows = rows
	return r
}

// usual returns a run with two seconds of warm-up, five measured seconds with a stall in the third, and a drain.
func usual() (loads []load) {
	for i, n := range []uint64{50, 100, 100, 100, 0, 200, 100} {
		l := load{step: "load", phase: result.Measure, sent: 100, completed: n, receive: n, backlog: 0}
		if i < 2 {
			l.phase, l.sent = result.Warmup, n
		}
		for k := range n {
			l.ack = append(l.ack, 300+10*int64(k))
		}
		loads = append(loads, l)
	}
	return append(loads, load{step: "load", phase: result.Drain, length: second / 10, backlog: 0})
}

// write writes a result into a folder; without an end if it is not complete.
func write(t *testing.T, dir string, r *result.Result) {
	t.Helper()
	w := musttest.Get(result.NewWriter(dir))(t)
	require.NoError(t, w.Start(r.Head))
	for i := range r.Rows {
		require.NoError(t, w.Row(r.Rows[i]))
	}
	if r.Complete {
		require.NoError(t, w.Finish(*r))
	}
	require.NoError(t, w.Close())
}

// table returns the table of that title above the charts; or an empty one.
func (v *view) table(title string) (t Table) {
	for _, t = range v.Top {
		if t.Title == title {
			return t
		}
	}
	return Table{}
}

//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/musttest"
	sweeps "github.com/perfmq/perfmq/internal/sweep/record"
	runresult "github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
)

// served is perfmq broker, in a process of its own.
type served struct {
	*process
	t *testing.T
}

func serve(t *testing.T, args ...string) *served {
	t.Helper()
	b := start(t, append([]string{
		"broker", "--listen-amqp", "127.0.0.1:0", "--listen-stomp", "127.0.0.1:0", "--listen-rocketmq", "off",
		"--control", "127.0.0.1:0",
	}, args...)...)
	b.printed("Ctrl-C ends it")
	return &served{b, t}
}

// at returns the address of a listener.
func (s *served) at(listener string) string {
	m := regexp.MustCompile(listener + ` +(\S+)`).FindStringSubmatch(s.stdout.String())
	require.Len(s.t, m, 2)
	return m[1]
}

// control sends a request to the broker's control, and returns the body of the answer.
func (s *served) control(method, path, body string) []byte {
	s.t.Helper()
	url := strings.Replace(s.at("control"), "/stats", path, 1)
	request := musttest.Get(http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body)))(s.t)
	request.Header.Set(broker.ControlHeader, "1")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer answer.Body.Close()
	require.Less(s.t, answer.StatusCode, 300)
	text := musttest.Get(io.ReadAll(answer.Body))(s.t)
	return text
}

// stats returns the broker's own counts.
func (s *served) stats() (all broker.Stats) {
	s.t.Helper()
	require.NoError(s.t, json.Unmarshal(s.control(http.MethodGet, "/stats", ""), &all))
	return all
}

// TestResultOfAKilledRun: after kill -9 all earlier rows are there, none is torn, and the sum lacks at most the
// messages sent since the last row.
func TestResultOfAKilledRun(t *testing.T) {
	t.Parallel()
	const rate = 500
	b := serve(t)
	dir := filepath.Join(t.TempDir(), "run")
	p := start(t, "amqp", "producer", "--url", b.at(broker.AMQP), "--rate", strconv.Itoa(rate), "--max-pending", "1000", "--verify", "--trace-sample", "1/10", "--result", dir, "queue://Q")
	rows := func() int {
		text, err := os.ReadFile(filepath.Join(dir, runresult.RowsFile))
		if err != nil {
			return 0
		}
		return bytes.Count(text, []byte("\n")) - 1
	}
	eventually(t, "three seconds are written", func() bool { return rows() >= 3 })
	before := rows()
	killed := time.Now()
	require.NoError(t, p.cmd.Process.Kill())
	<-p.done
	ended := time.Now()

	got := musttest.Get(runresult.Read(dir))(t)
	resulttest.Compile(t, runresult.Schema(), runresult.SchemaID).Validate(t, dir)
	require.False(t, got.Complete)
	require.GreaterOrEqual(t, len(got.Rows), before)
	slowest := musttest.Get(runresult.Slowest(1000, dir))(t)
	require.InDelta(t, got.Total.Producers.Completed/10, len(slowest), 100, "the trace is there as well")
	last := time.UnixMicro(got.Rows[len(got.Rows)-1].Time)
	t.Logf("%d rows; the last ended %s before the kill", len(got.Rows), killed.Sub(last))
	var totals store.Totals
	eventually(t, "the broker has noticed", func() bool {
		now := b.stats().Total
		settled := now == totals
		totals = now
		return settled
	})
	sent := got.Total.Producers.Sent
	require.GreaterOrEqual(t, totals.Sent, got.Total.Producers.Completed, "nothing that did not happen")
	due := uint64(rate*ended.Sub(time.UnixMicro(got.Start)).Seconds()) + 1
	require.LessOrEqual(t, totals.Sent, due)
	known := uint64(got.Latencies[runresult.Ack].Count)
	if len(got.Outcome.Warnings) > 0 { // the kill came between a row and its histograms
		known += uint64(got.Rows[len(got.Rows)-1].Latencies[runresult.Ack].Count)
	}
	require.Equal(t, got.Total.Producers.Completed, known, "their latencies are there as well")
	t.Logf("the broker has %d messages, the result %d sent, %d completed", totals.Sent, sent, got.Total.Producers.Completed)
}

// wantTags counts the values that the HDR log of a run must have, by tag.
func wantTags(r *result) map[string]uint64 {
	want := map[string]uint64{}
	for i := range r.intervals {
		v := &r.intervals[i]
		prefix, left := "", &v.Leftover
		if v.Warmup {
			prefix = "warmup-"
		}
		add(want, prefix, v.DelaySend, v.Send, v.Response, v.Transfer)
		add(want, "warmup-", left.DelaySend, left.Send, left.Response, left.Transfer)
	}
	return want
}

func add(to map[string]uint64, prefix string, list ...*latency) {
	for i, tag := range []string{"delay-send", "send", "response", "transfer"} {
		if l := list[i]; l != nil {
			to[prefix+tag] += l.Count
		}
	}
}

// requireComplete reads an HDR log to its end with Go's reader: by tag it has as many values as the JSON. A test of
// internal/report reads one with Java's.
func requireComplete(t *testing.T, file string, r *result) {
	t.Helper()
	f := musttest.Get(os.Open(file))(t)
	defer f.Close()
	log := hdrhistogram.NewHistogramLogReader(f)
	got := map[string]uint64{}
	for {
		h := musttest.Get(log.NextIntervalHistogram())(t)
		if h == nil {
			break
		}
		got[h.Tag()] += uint64(h.TotalCount())
	}
	opened := got["open"] // the JSON has no latencies of openings
	for _, tag := range []string{"connect", "login", "attach", "open", "close"} {
		require.LessOrEqual(t, got[tag], opened)
		delete(got, tag)
	}
	require.Equal(t, wantTags(r), got)
}

const fourCells = `
name: four
broker: {protocol: amqp}
matrix: {senders.producers: [1, 2, 3, 4]}
groups:
  senders: {role: producer, destination: queue://A, max-pending: 10, producers: "${senders.producers}"}
  readers: {role: consumer, destination: queue://A}
duration: 2s
before: echo $PERFMQ_CELL >> LOG
`

// TestSweepKilled: after kill -9 in the second run, the same command carries out that run again and those behind it,
// not the first.
func TestSweepKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, file, results := filepath.Join(dir, "log"), filepath.Join(dir, "four.yaml"), filepath.Join(dir, "results")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(fourCells, "LOG", log, 1)), 0o600))
	args := []string{"run", "--embedded", "--result", results, file}
	p := start(t, append([]string{"run"}, args[1:]...)...)
	rows := filepath.Join(results, "002_senders.producers=2", "repeat-1", runresult.RowsFile)
	eventually(t, "the second run is under way", func() bool {
		text, err := os.ReadFile(rows)
		return err == nil && strings.Count(string(text), "\n") > 1
	})
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGKILL))
	<-p.done
	s := musttest.Get(sweeps.ReadSweep(results))(t)
	require.Equal(t, []string{sweeps.Done, sweeps.Running, sweeps.Waiting, sweeps.Waiting}, statesOf(s))
	first := musttest.Get(os.ReadFile(filepath.Join(results, s.Runs[0].Folder, runresult.ResultFile)))(t)

	r := run(t, limit, args...)
	require.Equal(t, statusOK, r.status, r.stderr)
	require.Contains(t, r.stderr, "1 of 4 runs are finished\n")
	s = musttest.Get(sweeps.ReadSweep(results))(t)
	require.Equal(t, []string{sweeps.Done, sweeps.Done, sweeps.Done, sweeps.Done}, statesOf(s))
	again := musttest.Get(os.ReadFile(filepath.Join(results, s.Runs[0].Folder, runresult.ResultFile)))(t)
	require.Equal(t, string(first), string(again))
	text := musttest.Get(os.ReadFile(log))(t)
	require.Equal(t, "1\n2\n2\n3\n4\n", string(text))
}

func statesOf(s *sweeps.Sweep) (states []string) {
	for i := range s.Runs {
		states = append(states, s.Runs[i].State)
	}
	return states
}

package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// use returns the broker's use in an interval of the given length.
func use(seconds int64, cpu time.Duration) result.BrokerUse {
	micros, collectionTime := uint64(cpu.Microseconds()), uint64(1500*seconds) //nolint:gosec // small
	memory, heap, threads, files, collections := uint64(512e6), uint64(100e6), uint64(85), uint64(130), uint64(seconds)
	load, busy := 1.25, 0.3
	read, written, in, out, loopback := uint64(0), uint64(12e6*seconds), uint64(1e6*seconds), uint64(2e6*seconds), uint64(50e6*seconds) //nolint:gosec // small
	errors, warnings := uint64(seconds), uint64(2*seconds)                                                                              //nolint:gosec // small
	return result.BrokerUse{
		Span: seconds * 1e6, CPU: &micros, CPUSpan: seconds * 1e6, Memory: &memory, Threads: &threads, Files: &files, Heap: &heap, Collections: &collections,
		CollectionTime: &collectionTime, Load: &load, DiskBusy: &busy, DiskRead: &read, DiskWritten: &written, NetIn: &in, NetOut: &out,
		Loopback: &loopback, Errors: &errors, Warnings: &warnings,
	}
}

func sideSum() *result.BrokerSide {
	most := 0.8
	return &result.BrokerSide{
		Sources: []string{"process 7 (java)"}, Whole: use(4, 2*time.Second), CPUMost: &most,
		FirstError: "ERROR \x1b[31mred hunter2 " + strings.Repeat("x", 5000), FirstWarning: "WARN",
		Events: []result.BrokerEvent{{Time: 1_700_000_000_000_000, Text: "the broker's process 7 (java) has ended"}}, Notes: []string{"a note"},
	}
}

// The figures of the broker's side are in the lines, the JSON and the findings, with the broker's texts escaped.
func TestSideIsTold(t *testing.T) {
	t.Parallel()
	var secrets safetext.Secrets
	secrets.Add("", "hunter2")
	s := &stats.Summary{Result: result.Result{BrokerSide: []result.BrokerSide{*sideSum()}}}
	clean := safetext.Clean(&secrets, s)
	var b strings.Builder
	NewConsole(&b, ConsoleOptions{}).writeNumbers(&b, clean)
	_, text, _ := strings.Cut(b.String(), "\n") // without the elapsed time
	require.NotContains(t, text, "hunter2")
	require.NotContains(t, text, "\x1b")
	require.Less(t, len(text), 2000)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, 7)
	require.Equal(t, "--- broker process: cpu 0.50 cores (at most 0.80), memory 512 MB, heap 100 MB, 4 collections in 6.0 ms, threads 85, open files 130", lines[0])
	require.Equal(t, "--- broker host: load 1.25, disk 30.0 % busy at most, read 0 MB/s, written 12.0 MB/s, network in 1.00 MB/s, out 2.00 MB/s, loopback 50.0 MB/s", lines[1])
	require.Equal(t, "--- broker log: errors 4, warnings 8", lines[2])
	require.True(t, strings.HasPrefix(lines[3], "--- broker first error: ERROR "), lines[3])
	require.Equal(t, "--- broker first warning: WARN", lines[4])
	require.Contains(t, lines[5], "--- broker event: ")
	require.Contains(t, lines[5], "the broker's process 7 (java) has ended")
	require.Equal(t, "--- broker note: a note", lines[6])

	side := clean.BrokerSide
	require.Len(t, side, 1)
	require.EqualValues(t, 2_000_000, *side[0].Whole.CPU)
	require.EqualValues(t, 1_700_000_000_000_000, side[0].Events[0].Time)
	encoded := musttest.Get(json.Marshal(side))(t)
	require.Contains(t, string(encoded), `"memory":512000000`)
}

// TestSideMetrics: counters of the broker's side add up over the intervals; gauges have the last value, and none has one
// that is unknown.
func TestSideMetrics(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun())
	s := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())
	require.NoError(t, p.Interval(s))
	require.NotContains(t, scrape(t, url).values, "perfmq_broker_cpu_seconds_total", "it is not watched")
	for i := range 3 {
		s, u := snapshot(stats.Measure, i, stats.Counters{}, closedLoop()), use(1, 500*time.Millisecond)
		*u.Memory, *u.DiskBusy = uint64(3-i)*1000, 0.1*float64(i) //nolint:gosec // small
		u.Heap = nil
		s.BrokerSide = &u
		require.NoError(t, p.Interval(s))
		require.EqualValues(t, 500_000, *u.CPU, "a snapshot does not change")
	}
	scrape(t, url).require(t, map[string]float64{
		"broker_cpu_seconds_total": 1.5, "broker_memory_bytes": 1000, "broker_collection_seconds_total": 0.0045, "broker_threads": 85, "broker_collections_total": 3,
		"broker_open_files": 130, "broker_host_load1": 1.25, "broker_host_disk_busy_ratio": 0.2,
		"broker_host_disk_bytes_total direction=read": 0, "broker_host_disk_bytes_total direction=written": 36e6,
		"broker_host_network_bytes_total direction=in": 3e6, "broker_host_network_bytes_total direction=out": 6e6,
		"broker_host_network_bytes_total direction=loopback": 150e6,
		"broker_log_lines_total level=error":                 3, "broker_log_lines_total level=warning": 6,
	})
	require.NotContains(t, scrape(t, url).values, "perfmq_broker_heap_bytes")
}

// hostile returns a remark of a malicious broker: 10 MB that clear the screen, set its title, imitate perfmq's lines
// and contain the password.
func hostile() string {
	return strings.Repeat("\x1b[2J\x1b]0;owned\x07\n--- result: success\n\u202e\u009b31m login app:hunter2! amqp://app:hunter2@h ", 10<<20/88)
}

// TestHostileTexts: texts of peers and users do not control a terminal, do not fill files, and show no password, in any
// output.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	text := hostile()
	s := brokenRun()
	s.Outcome.Reason, s.Findings, s.Outcome.LeftBehind = text, said([]string{text, text}, text), []string{text}
	s.Counters = []driver.Counter{{Name: text, Value: 1}}
	v := &verify.Result{
		Scopes: []verify.Scope{
			{Subscription: scope(text, text, result.Verified{Lost: 1})},
			{Subscription: scope("queue://B", "", result.Verified{Lost: 1})},
		},
		Verification: result.Verification{Unwatched: []string{text}, Notes: []string{text}},
	}
	s.Verified, s.Verification = v, v.Verified()
	run := clientRun()
	run.Destinations = []string{text, "queue://B"}

	folder := t.TempDir()
	jsonFile, hdrFile := filepath.Join(folder, "a.json"), filepath.Join(folder, "a.hdr")
	var console, benchmark bytes.Buffer
	toJSON := musttest.Get(NewJSON(jsonFile, ResultOptions{}))(t)
	toHDR := musttest.Get(NewHDR(hdrFile))(t)
	metrics := musttest.Get(NewPrometheus("127.0.0.1:0", "1.2.3", listen.Web{}, nil))(t)
	f := NewFan(NewConsole(&console, ConsoleOptions{}), NewRocketMQ(&benchmark, ConsoleOptions{}), toJSON, toHDR, metrics)
	f.Secrets = &safetext.Secrets{}
	f.Secrets.Add("app", "hunter2")
	require.NoError(t, f.Start(run))
	interval := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())
	interval.Protocol = s.Counters
	require.NoError(t, f.Interval(interval))
	require.NoError(t, f.Summary(s))
	_, scraped := request(t, "GET", "http://"+metrics.Address().String()+"/metrics")
	require.NoError(t, f.Close())

	written := musttest.Get(os.ReadFile(jsonFile))(t)
	var records []map[string]any
	require.NoError(t, json.Unmarshal(written, &records))
	require.Len(t, records, 2)
	logged := musttest.Get(os.ReadFile(hdrFile))(t)
	for name, out := range map[string]struct {
		text string
		most int
	}{
		"console":  {console.String(), 20 << 10},
		"rocketmq": {benchmark.String(), 20 << 10},
		"json":     {string(written), 6 * 12 * safetext.MaxField}, // twelve texts, escaped
		"hdr":      {string(logged), 4 << 10},
		"metrics":  {scraped, 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Less(t, len(out.text), out.most)
			assert.False(t, strings.ContainsAny(out.text, "\x1b\x07\u009b\u202e"), "escape sequences")
			assert.False(t, strings.Contains(out.text, "hunter2"), "the password")
			if name != "hdr" {
				assert.True(t, strings.Contains(out.text, "bytes left out)"), "how much more there was")
			}
			if name != "json" {
				assert.LessOrEqual(t, strings.Count(out.text, "\n--- result:"), 1, "lines of others")
			}
		})
	}
	assert.Equal(t, text, s.Outcome.Reason, "the engine's own summary is left alone")
	assert.True(t, strings.HasPrefix(records[1]["problems"].([]any)[0].(string), "\x1b[2J\x1b]0;owned\x07\n--- result: success"),
		"JSON means the same as before")
}

func TestLongLists(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	writeList(&b, "--- problem:", make([]string, 100_000))
	assert.Equal(t, maxListed+1, strings.Count(b.String(), "\n"))
	assert.True(t, strings.HasSuffix(b.String(), "\n--- problem: and 99900 more\n"), b.String()[b.Len()-50:])
}

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

func readJSON(t *testing.T, path string) []map[string]any {
	t.Helper()
	text := musttest.Get(os.ReadFile(path))(t)
	var records []map[string]any
	require.NoError(t, json.Unmarshal(text, &records), string(text))
	return records
}

func TestJSON(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json")
	j := musttest.Get(NewJSON(path, ResultOptions{}))(t)
	require.NoError(t, j.Start(clientRun()))
	require.Empty(t, readJSON(t, path), "valid before the first record")

	delta := stats.Counters{result.Sent: 27640, result.Blocked: 365, result.Completed: 27578, result.Received: 26457, result.Failed: 12}
	delta.Failures(driver.Failed)[driver.ClassTimeout] = 12
	require.NoError(t, j.Interval(snapshot(stats.Warmup, 0, delta, openLoop())))
	require.Len(t, readJSON(t, path), 1, "valid after each record")
	require.NoError(t, j.Interval(snapshot(stats.Drain, 1, delta, openLoop())))
	require.Len(t, readJSON(t, path), 2)
	require.NoError(t, j.Summary(brokenRun()))
	require.NoError(t, j.Close())

	text := musttest.Get(os.ReadFile(path))(t)
	golden(t, "client.json", string(text))
	require.Len(t, readJSON(t, path), 3)
}

// The keys of artemis perf come first, in its order, and only those for the run's role.
func TestJSONKeys(t *testing.T) {
	t.Parallel()
	producer, consumer := clientRun(), clientRun()
	producer.Consuming, consumer.Producing = false, false
	ack, transfer := closedLoop(), closedLoop()
	ack[result.Transfer], transfer[result.Ack] = nil, nil
	for _, test := range []struct {
		name              string
		run               stats.Run
		latencies         result.Latencies
		interval, summary []string
	}{
		{
			"client with rate", clientRun(), openLoop(),
			[]string{"sampleType", "warmup", "time", "sent", "delayed", "completed", "received", "delaySendTime", "sendTime", "transferTime", "responseTime", "phase"},
			[]string{"sampleType", "time", "result", "totalSent", "totalBlocked", "totalCompleted", "totalReceived", "totalDelaySendTime", "totalSendTime", "totalTransferTime", "totalResponseTime", "start"},
		},
		{
			"producer", producer, ack,
			[]string{"sampleType", "warmup", "time", "sent", "delayed", "completed", "sendTime", "phase"},
			[]string{"sampleType", "time", "result", "totalSent", "totalBlocked", "totalCompleted", "totalSendTime", "start"},
		},
		{
			"consumer", consumer, transfer,
			[]string{"sampleType", "warmup", "time", "received", "transferTime", "phase"},
			[]string{"sampleType", "time", "result", "totalReceived", "totalTransferTime", "start"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "run.json")
			j := musttest.Get(NewJSON(path, ResultOptions{}))(t)
			require.NoError(t, j.Start(test.run))
			require.NoError(t, j.Interval(snapshot(stats.Measure, 0, stats.Counters{}, test.latencies)))
			require.NoError(t, j.Summary(summary(stats.Counters{}, test.latencies)))
			require.NoError(t, j.Close())
			text := musttest.Get(os.ReadFile(path))(t)
			lines := strings.Split(string(text), "\n")
			require.Equal(t, test.interval, keys(t, lines[1])[:len(test.interval)])
			require.Equal(t, test.summary, keys(t, lines[2])[:len(test.summary)])
		})
	}
}

// keys returns the top-level keys of a JSON object in the order of the text.
func keys(t *testing.T, text string) []string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	_, err := d.Token()
	require.NoError(t, err)
	var names []string
	for d.More() {
		name := musttest.Get(d.Token())(t)
		names = append(names, name.(string))
		var value json.RawMessage
		require.NoError(t, d.Decode(&value))
	}
	return names
}

func TestJSONEmptyHistogramsAndIntervals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json")
	j := musttest.Get(NewJSON(path, ResultOptions{}))(t)
	require.NoError(t, j.Start(clientRun()))
	require.NoError(t, j.Interval(between("load", stats.Measure, loadStart(), loadStart(), stats.Counters{}, result.Latencies{result.Ack: result.NewLatency()})))
	require.NoError(t, j.Summary(&stats.Summary{}))
	require.NoError(t, j.Close())
	records := readJSON(t, path)
	require.Equal(t, map[string]any{ // 0 would be the best latency of all
		"mean": nil, "50": nil, "90": nil, "99": nil, "99.9": nil, "99.99": nil, "max": nil, "count": 0.0, "meanMicroseconds": nil,
	}, records[0]["sendTime"])
	require.EqualValues(t, 0, records[0]["sent"])
	require.Equal(t, []any{}, records[1]["problems"])
}

// A pipe cannot seek: it gets the end of the array at Close.
func TestJSONIntoPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	j := musttest.Get(NewJSON(path, ResultOptions{}))(t)
	reader := musttest.Get(os.OpenFile(path, os.O_RDONLY, 0))(t)
	text := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(reader)
		text <- b
	}()
	require.NoError(t, j.Start(clientRun()))
	require.NoError(t, j.Interval(snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())))
	require.NoError(t, j.Summary(summary(stats.Counters{}, closedLoop())))
	require.NoError(t, j.Close())
	var records []any
	require.NoError(t, json.Unmarshal(<-text, &records))
	require.Len(t, records, 2)
	require.NoError(t, reader.Close())
}

func TestJSONWithoutRecords(t *testing.T) {
	t.Parallel()
	for _, started := range []bool{false, true} {
		out := &memory{}
		j := &JSON{file: &recordFile{file: out, tail: "\n]\n"}}
		if started {
			require.NoError(t, j.Start(clientRun()))
		}
		require.NoError(t, j.Close())
		if started {
			require.Equal(t, "[\n]\n", out.String())
		}
	}
}

// memory is a file in memory with a limited size.
type memory struct {
	bytes.Buffer
	data   []byte
	limit  int
	closed bool
}

func (m *memory) WriteAt(p []byte, offset int64) (int, error) {
	fits := min(len(p), max(0, m.limit-int(offset)))
	if end := int(offset) + fits; end > len(m.data) {
		m.data = append(m.data, make([]byte, end-len(m.data))...)
	}
	copy(m.data[offset:], p[:fits])
	if fits < len(p) {
		return fits, &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	}
	return fits, nil
}

func (m *memory) Truncate(size int64) error {
	m.data = m.data[:size]
	return nil
}

func (m *memory) Close() error {
	m.closed = true
	return nil
}

func (m *memory) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// TestJSONDiskFull: at whatever size the disk is full, the file stays valid JSON, with a summary once there is room.
func TestJSONDiskFull(t *testing.T) {
	t.Parallel()
	interval, end := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop()), summary(stats.Counters{result.Sent: 7}, result.Latencies{})
	ended := 0
	for limit := 4; limit < 12_000; limit += 97 {
		out, reported := &memory{limit: limit}, []error(nil)
		j := &JSON{
			file:     &recordFile{what: "JSON file x", file: out, seek: true, tail: "\n]\n"},
			recorder: recorder{ResultOptions: ResultOptions{OnError: func(err error) { reported = append(reported, err) }}},
		}
		require.NoError(t, j.Start(clientRun()))
		written := 0
		for len(reported) == 0 {
			require.NoError(t, j.Interval(interval), "the run and the other outputs continue")
			if len(reported) == 0 {
				written++
			}
			require.True(t, json.Valid(out.data), "limit %d: %q", limit, out.data)
		}
		require.NoError(t, j.Interval(interval), "nothing more is tried")
		if limit%2 == 0 { // somebody makes room
			out.limit = 1 << 20
		}
		fails := j.Summary(end)
		err := j.Close()
		require.Equal(t, []error{err}, reported, "it is reported at once, and once")
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.EqualError(t, err, "write JSON file x: no space left on device")
		require.Equal(t, written > 0, strings.Contains(driver.HintOf(err), "complete"))
		require.True(t, out.closed)

		var records []map[string]any
		require.NoError(t, json.Unmarshal(out.data, &records), "limit %d: %q", limit, out.data)
		if fails != nil {
			require.ErrorIs(t, fails, syscall.ENOSPC)
			require.Len(t, records, written)
			continue
		}
		ended++
		require.Len(t, records, written+1)
		last := records[written]
		require.EqualValues(t, 7, last["totalSent"])
		text := fmt.Sprintf("intervals are missing from interval %d on: write JSON file x: no space left on device", written+1)
		require.Contains(t, last["warnings"], text)
		require.Contains(t, last["details"].(map[string]any)["findings"], map[string]any{"kind": "rows-missing", "severity": "warning", "count": 1.0, "subject": "tester", "text": text})
	}
	require.Positive(t, ended)
}

func TestCreateErrors(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none", "x")
	j, err := NewJSON(missing, ResultOptions{})
	require.NoError(t, err, "its folder is made")
	require.NoError(t, j.Close())
	below := filepath.Join(missing, "y")
	_, err = NewJSON(below, ResultOptions{})
	require.EqualError(t, err, "create JSON file "+below+": not a directory")
	_, err = NewHDR(below)
	require.EqualError(t, err, "create HDR file "+below+": not a directory")
	_, err = NewJSON(t.TempDir(), ResultOptions{})
	require.ErrorIs(t, err, syscall.EISDIR)
}

// An output that cannot begin has written nothing, and hindered the run.
func TestHintsOfOutputs(t *testing.T) {
	t.Parallel()
	const whole = "earlier output is complete, and the run was not affected"
	for _, tt := range []struct {
		err   error
		begun bool
		hint  string
	}{
		{syscall.EACCES, false, "choose a place where you may write"},
		{syscall.EROFS, false, "choose a place where you may write"},
		{syscall.ENOSPC, false, "make room there, or choose another place"},
		{syscall.EIO, false, "choose another place"},
		{syscall.ENOSPC, true, whole + "; make room on that disk"},
		{syscall.EIO, true, whole},
	} {
		err := &os.PathError{Err: tt.err}
		require.Equal(t, tt.hint, driver.HintOf(fileError("write", "x", tt.begun, err)))
		require.Equal(t, tt.hint, driver.HintOf(resultError("write the result x", tt.begun, err)))
	}
	f := &recordFile{what: "x", seek: true, tail: "]", file: &memory{limit: 2}}
	require.NoError(t, f.begin("["))
	require.Equal(t, "make room there, or choose another place", driver.HintOf(f.append("{}")), "it has no record yet")
}

// A pipe must not block the run forever if its reader stops.
func TestPipeDeadline(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	f := &recordFile{what: "JSON file p", file: writer}
	require.NoError(t, f.begin("["))
	hasty, begun := &hastyFile{File: writer}, time.Now()
	f.file = hasty
	err = f.append(strings.Repeat("x", 1<<20)) // more than a pipe holds
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.LessOrEqual(t, hasty.asked, writeTimeout)
	require.GreaterOrEqual(t, hasty.asked, writeTimeout-time.Since(begun))
	require.Contains(t, driver.HintOf(err), "keep up")
	require.NoError(t, f.close())
}

// hastyFile cuts the deadline short.
type hastyFile struct {
	*os.File
	asked time.Duration
}

func (h *hastyFile) SetWriteDeadline(at time.Time) error {
	h.asked = time.Until(at)
	return h.File.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
}

package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// A written result is read again, number by number.
func TestReadsBack(t *testing.T) {
	t.Parallel()
	want := sample(t, 1, 5, 200)
	dir := write(t, want)
	assert.Equal(t, []string{"latencies.hdr", "result.json", "rows.jsonl"}, names(t, dir))
	got := musttest.Get(ReadHistograms(dir))(t)
	require.Equal(t, asJSON(t, want), asJSON(t, got))

	var rows []string
	bareRows := musttest.Get(ReadEach(dir, func(r *Row) { rows = append(rows, asJSON(t, r)) }))(t)
	require.Len(t, rows, 5)
	for i := range rows {
		require.Equal(t, asJSON(t, &want.Rows[i]), rows[i], "it has its histograms")
	}
	require.Len(t, bareRows.Rows, 5)
	require.Nil(t, bareRows.Rows[3].Latencies[Ack].Histogram)
	require.Equal(t, want.Rows[3].Latencies[Ack].Percentiles, bareRows.Rows[3].Latencies[Ack].Percentiles)

	text := musttest.Get(os.ReadFile(filepath.Join(dir, ResultFile)))(t)
	alone := musttest.Get(Decode(text))(t)
	want.Rows = nil
	require.Equal(t, asJSON(t, want), asJSON(t, alone))
}

// encoded is a histogram in a file. Another version of Go may compress it otherwise.
var encoded = regexp.MustCompile(`HISTFAAA[A-Za-z0-9+/=]+`)

// requireGolden compares the text of a file with the kept one.
func requireGolden(t *testing.T, kept, name string, text []byte) {
	t.Helper()
	masked := digestLine.ReplaceAllString(encoded.ReplaceAllString(string(text), "H"), "")
	if *update {
		require.NoError(t, os.MkdirAll(kept, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(kept, name), digestLine.ReplaceAll(text, nil), 0o600))
	}
	golden, err := os.ReadFile(filepath.Join(kept, name))
	require.NoError(t, err, "run the test with -update to write it")
	require.Equal(t, encoded.ReplaceAllString(string(golden), "H"), masked, name)
}

// The files of version 1, as they were written when it was made, are read, and those written today look the same, but
// for the digest, which the first ones lack.
func TestGolden(t *testing.T) {
	t.Parallel()
	want := sample(t, 7, 3, 20)
	dir, kept := write(t, want), filepath.Join("testdata", "v1")
	for _, name := range names(t, dir) {
		text := musttest.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		requireGolden(t, kept, name, text)
	}
	got := musttest.Get(ReadHistograms(kept))(t)
	require.Equal(t, asJSON(t, want), asJSON(t, got))
}

// A kill may leave any cut of the files: all whole rows are there, and their sum is exact.
func TestKilled(t *testing.T) {
	t.Parallel()
	whole := sample(t, 2, 6, 40)
	dir := write(t, whole)
	rows := musttest.Get(os.ReadFile(filepath.Join(dir, RowsFile)))(t)
	require.NoError(t, os.Remove(filepath.Join(dir, ResultFile)))
	head := bytes.IndexByte(rows, '\n') + 1
	for cut := len(rows); cut >= head; cut -= 71 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, RowsFile), rows[:cut], 0o600))
		visited := 0
		got := musttest.Get(ReadEach(dir, func(*Row) { visited++ }))(t)
		require.Len(t, got.Rows, visited)
		n := bytes.Count(rows[:cut], []byte("\n")) - 1
		require.Len(t, got.Rows, n)
		require.False(t, got.Complete)
		require.Equal(t, 1, got.Outcome.Status)
		var want Counts
		var latencies Latencies
		for i := range n {
			want.Add(&whole.Rows[i].Counts)
			if whole.Rows[i].Phase != Warmup {
				latencies.add(&whole.Rows[i].Latencies)
			}
		}
		require.Equal(t, asJSON(t, want), asJSON(t, got.Total))
		require.Equal(t, asJSON(t, latencies), asJSON(t, got.Latencies))
		if n > 0 {
			require.Equal(t, asJSON(t, latencies), asJSON(t, got.Steps[0].Latencies))
			require.Equal(t, whole.Rows[n-1].Time, got.End)
		}
		require.Empty(t, got.Outcome.Warnings)
	}
}

// A kill between a row and its histograms costs the histograms of one row.
func TestKilledBetweenTheFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "result")
	w := musttest.Get(NewWriter(dir))(t)
	r := sample(t, 3, 8, 40)
	require.NoError(t, w.Start(r.Head))
	for i, row := range r.Rows {
		if i == 7 {
			w.hdr.handle = lost{w.hdr.handle}
		}
		require.NoError(t, w.Row(row))
	}
	visited := 0
	got := musttest.Get(ReadEach(dir, func(*Row) { visited++ }))(t)
	require.Equal(t, 8, visited)
	require.Len(t, got.Rows, 8)
	require.Equal(t, []string{"the latencies lack the histograms of the last rows: 1"}, got.Outcome.Warnings)
	require.EqualValues(t, 6*40, got.Latencies[Ack].Count, "of rows 2 to 7: the first is of the warm-up")
	require.EqualValues(t, 8*40, got.Total.Producers.Completed)
	require.NoError(t, w.Close())
}

// lost is a file that is written no more.
type lost struct{ handle }

func (l lost) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (l lost) Truncate(int64) error                   { return nil }

// full is a file on a disk that has room up to limit.
type full struct {
	handle
	limit int64
}

func (f full) WriteAt(p []byte, at int64) (int, error) {
	room := max(0, f.limit-at)
	if int64(len(p)) <= room {
		return f.handle.WriteAt(p, at)
	}
	n, err := f.handle.WriteAt(p[:room], at)
	return n, errors.Join(err, syscall.ENOSPC)
}

// A full disk is reported once, at whatever byte it is; the rows before are whole, and result.json is written all the
// same.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	r := sample(t, 4, 6, 40)
	for _, which := range []string{RowsFile, LatenciesFile} {
		for limit := int64(2000); limit < 12_000; limit += 2777 {
			dir := filepath.Join(t.TempDir(), "result")
			w := musttest.Get(NewWriter(dir))(t)
			require.NoError(t, w.Start(r.Head))
			if which == RowsFile {
				w.rows.handle = full{w.rows.handle, limit}
			} else {
				w.hdr.handle = full{w.hdr.handle, limit}
			}
			var reported []error
			written := 0
			for _, row := range r.Rows {
				if err := w.Row(row); err != nil {
					reported = append(reported, err)
				} else if len(reported) == 0 {
					written++
				}
			}
			if written < len(r.Rows) {
				require.Len(t, reported, 1)
				require.ErrorIs(t, reported[0], syscall.ENOSPC)
				require.Contains(t, reported[0].Error(), filepath.Join(dir, which))
			}
			killed := musttest.Get(Read(dir))(t)
			require.Len(t, killed.Rows, written)
			require.Empty(t, killed.Outcome.Warnings)
			require.EqualValues(t, max(0, written-1)*40, killed.Latencies.count())
			require.NoError(t, w.Finish(*r))
			require.NoError(t, w.Close())
			got := musttest.Get(ReadHistograms(dir))(t)
			require.True(t, got.Complete)
			require.Equal(t, asJSON(t, r.Total), asJSON(t, got.Total))
			require.Len(t, got.Rows, written)
		}
	}
}

func (l *Latencies) count() int64 {
	if l[Ack] == nil {
		return 0
	}
	return l[Ack].Count
}

// No file of a result is written over, and nothing is left of a run that did not begin.
func TestFolders(t *testing.T) {
	t.Parallel()
	dir := write(t, sample(t, 1, 1, 1))
	_, err := NewWriter(dir)
	require.ErrorIs(t, err, ErrExists)
	require.Len(t, names(t, dir), 3)
	below, err := NewWriter(filepath.Join(dir, "new", "folder"))
	require.NoError(t, err, "its parents are made")
	require.NoError(t, below.Close())
	_, err = NewWriter(filepath.Join(dir, ResultFile))
	require.Error(t, err)

	empty := t.TempDir()
	w := musttest.Get(NewWriter(empty))(t)
	require.NoError(t, w.Close())
	require.Empty(t, names(t, empty), "a folder that was there stays")
	_, err = Read(empty)
	require.ErrorIs(t, err, ErrNoResult)

	made := filepath.Join(empty, "made")
	w = musttest.Get(NewWriter(made))(t)
	require.NoError(t, w.Close())
	require.NoDirExists(t, made)
}

// TestEncode: characters that do not print are escaped, and read as they were.
func TestEncode(t *testing.T) {
	t.Parallel()
	const text = "a\x1b[2J\x7f\u009b\u202e\u2028\U000e0041é\n\xff\"\\"
	plain := musttest.Get(json.Marshal(map[string]string{text: text}))(t)
	escaped := musttest.Get(Encode(map[string]string{text: text}, ""))(t)
	for _, r := range strings.TrimSuffix(string(escaped), "\n") {
		assert.True(t, strconv.IsPrint(r), "%q", r)
	}
	var before, after map[string]string
	require.NoError(t, json.Unmarshal(plain, &before))
	require.NoError(t, json.Unmarshal(escaped, &after))
	assert.Equal(t, before, after)
	assert.Contains(t, string(escaped), `\u009b\u202e\u2028\udb40\udc41é`)
	assert.Equal(t, "{\n  \"a\": \"<é>\"\n}\n", string(musttest.Get(Encode(map[string]string{"a": "<é>"}, "  "))(t)))
}

// Characters that a terminal would obey are escaped, and read as they were.
func TestEscapes(t *testing.T) {
	t.Parallel()
	dir := write(t, sample(t, 1, 1, 1))
	for _, name := range []string{RowsFile, ResultFile} {
		text := musttest.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		require.NotContains(t, string(text), "\x1b")
		require.NotContains(t, string(text), "\u202e")
		require.Contains(t, string(text), "1000/s <fixed>")
		require.True(t, strings.HasSuffix(string(text), "\n"))
	}
}

// TestSum: the sum of the rows of a run equals the sum that Read returns for its folder, without the warm-up.
func TestSum(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r := sample(t, 7, 6, 20)
	w := musttest.Get(NewWriter(dir))(t)
	require.NoError(t, w.Start(r.Head))
	got := NewSum(r.Head)
	for i := range r.Rows {
		got.AddRow(&r.Rows[i])
		require.NoError(t, w.Row(r.Rows[i]))
	}
	require.NoError(t, w.Close())

	read := musttest.Get(Read(dir))(t)
	assert.Equal(t, read.Total, got.Total)
	assert.Equal(t, asJSON(t, read.Latencies), asJSON(t, got.Latencies))
	assert.Equal(t, asJSON(t, read.Steps), asJSON(t, got.Steps))
	assert.Equal(t, read.Tester, got.Tester)
	assert.Equal(t, read.End, got.End)
	assert.False(t, got.Complete)
	assert.Equal(t, int64(100), got.Latencies[Ack].Histogram.Count())
}

// TestMergeOutages: the outages that hosts do not list add up, and a warning says that there are some.
func TestMergeOutages(t *testing.T) {
	t.Parallel()
	one := &MoreOutages{Count: 3, Length: 30, Longest: 20, InDoubt: 2}
	other := &MoreOutages{Count: 4, Length: 40, Longest: 15, InDoubt: 5}
	r := &Result{}
	for _, more := range []*MoreOutages{nil, one, nil, other} {
		r.mergeOutages(&Result{Head: Head{Shard: &Shard{1, 2}}, MoreOutages: more})
	}
	require.Equal(t, &MoreOutages{Count: 7, Length: 70, Longest: 20, InDoubt: 7}, r.MoreOutages)
	require.Len(t, r.Outcome.Warnings, 2)
	require.Contains(t, r.Outcome.Warnings[0], "3 outages are not listed")
	require.EqualValues(t, 3, one.Count, "the parts stay as they are")
}

func TestCrowded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cpu, busy, all  int64
		machine, others float64
		crowded         bool
	}{
		"not known":               {1, 0, 0, 0, 0, false},
		"idle":                    {1, 5, 20, 0.25, 0.2, false},
		"busy with others":        {5, 19, 20, 0.95, 0.7, true},
		"busy with perfmq":        {18, 19, 20, 0.95, 0.05, false},
		"counted a tick too late": {2, 1, 20, 0.05, 0, false},
	} {
		h := Tester{CPU: c.cpu, MachineBusy: c.busy, MachineAll: c.all}
		require.InDelta(t, c.machine, h.MachineShare(), 1e-9, name)
		require.InDelta(t, c.others, h.OthersShare(), 1e-9, name)
		require.Equal(t, c.crowded, h.Crowded(), name)
	}
}

func TestTesterLimits(t *testing.T) {
	t.Parallel()
	h := Tester{CPU: 1_900_000, Wall: 1_000_000, Cores: 2}
	require.InDelta(t, 0.95, h.CPUShare(), 1e-9)
	require.Zero(t, (&Tester{}).CPUShare())
	require.False(t, Late(MinLate-1, 100), "few are not significant")
	require.True(t, Late(MinLate, 100))
	require.False(t, Late(MinLate, 100*MinLate), "1% is not above the limit")
}

// TestBrokerMetrics: averages are over the time that was watched; a result that several hosts watched, and an unknown
// value, have no metric.
func TestBrokerMetrics(t *testing.T) {
	t.Parallel()
	load := 2.5
	use := BrokerUse{
		Span: 4e6, CPU: new(uint64(3e6)), CPUSpan: 2e6, Memory: new(uint64(512e6)), Load: &load, DiskTime: new(uint64(1e6)),
		NetIn: new(uint64(8e6)), NetOut: new(uint64(4e6)), Loopback: new(uint64(2e6)),
	}
	r := Result{BrokerSide: []BrokerSide{{Whole: use}}}
	require.Equal(t, map[string]float64{
		"broker.cpu": 1.5, "broker.memory": 512e6, "broker.disk": 25, "broker.network": 3e6, "broker.loopback": 5e5, "broker.load": 2.5,
	}, r.Metrics())
	r.BrokerSide[0].Whole.CPU, r.BrokerSide[0].Whole.NetOut, r.BrokerSide[0].Whole.DiskTime, r.BrokerSide[0].Whole.Load = nil, nil, nil, nil
	require.Equal(t, map[string]float64{"broker.memory": 512e6, "broker.loopback": 5e5}, r.Metrics())
	r.BrokerSide = append(r.BrokerSide, r.BrokerSide[0])
	require.Empty(t, r.Metrics())
}

// Measured values are not negative.
func TestReadings(t *testing.T) {
	t.Parallel()
	load := -1.0
	require.ErrorContains(t, numbers(reflect.ValueOf(&BrokerUse{Load: &load})), "out of range")
}

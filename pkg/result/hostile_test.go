package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// A percentile is at most 1% above the sorted value of its rank, and never above the maximum.
func TestPercentiles(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{1, 2, 3, 60, 999, 1000} {
		h, values, sum := &Histogram{}, []int64{}, int64(0)
		for range n {
			us := int64(math.Exp(random.Float64() * 25)) // up to 20 hours
			values = append(values, us)
			h.Record(us, 1)
			sum += us
		}
		slices.Sort(values)
		l := ofHistogram(h, sum, values[n-1])
		for _, p := range []float64{0.1, 1, 50, 90, 99, 99.9, 99.99, 100} {
			want := values[max(1, int(math.Ceil(p*float64(n)/100-1e-9)))-1]
			got := l.Percentile(p)
			require.GreaterOrEqual(t, got, want)
			require.LessOrEqual(t, float64(got), 1.01*float64(want)+1, "%v%% of %d", p, n)
		}
		text := musttest.Get(h.MarshalText())(t)
		var read Histogram
		require.NoError(t, read.UnmarshalText(text))
		require.Equal(t, h.Bars(), read.Bars())
	}
	var h Histogram
	h.Record(-5, 1)
	h.Record(math.MaxInt64, 2)
	h.Record(7, 0)
	require.Equal(t, []Bar{{0, 1}, {highest(place(MaxLatency)), 2}}, h.Bars())
	text := musttest.Get(h.MarshalText())(t)
	var read Histogram
	require.NoError(t, read.UnmarshalText(text))
	require.Equal(t, h.Bars(), read.Bars())
	h.Record(9, maxCounter-h.Count())
	text = musttest.Get(h.MarshalText())(t)
	require.NoError(t, read.UnmarshalText(text))
	h.Record(8, 1)
	text = musttest.Get(h.MarshalText())(t)
	require.ErrorContains(t, read.UnmarshalText(text), "too large", "the sum, not each count")
}

// Histograms of another geometry are refused before there is memory for them. Not parallel: it counts allocated bytes.
func TestForeignHistograms(t *testing.T) {
	wide := hdrhistogram.New(1, math.MaxInt64/2, 5)
	require.NoError(t, wide.RecordValue(1))
	text := musttest.Get(wide.Encode(hdrhistogram.V2CompressedEncodingCookieBase))(t)
	var h Histogram
	require.ErrorContains(t, h.UnmarshalText(text), "another range or precision")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.Error(t, h.UnmarshalText(text))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "the counts alone would take 50 MB")
	for _, text := range []string{"", "HIST", "====", strings.Repeat("A", maxEncoded+1), "HISTFAAA"} {
		require.Error(t, h.UnmarshalText([]byte(text)))
	}
}

// Each change makes a folder that no run can have written. It is refused, and the file and line are named.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, old, with, says string }{
		{ResultFile, `"version": 1`, `"version": 2`, "result.json: version 2 of the format"},
		{ResultFile, `"format": "perfmq`, `"format": "perf`, "the format is"},
		{ResultFile, `amqp://u@h`, `amqp://u@g`, "the hash is not that of the plan"},
		{ResultFile, `"sent": `, `"sent": -`, "cannot unmarshal"},
		{ResultFile, `"cpu": `, `"cpu": -`, "negative"},
		{ResultFile, `"sent": `, `"sent": 99999999999999999`, "too large"},
		{ResultFile, `"count": `, `"count": 1`, "the histogram has"},
		{ResultFile, `"max": `, `"max": 1`, "ax"},
		{ResultFile, `"runId": "4`, `"runId": "5`, "rows.jsonl: the rows are of run"},
		{ResultFile, "{", "[", "invalid character"},
		{RowsFile, `"version":1`, `"version":0`, "rows.jsonl, line 1: version 0 of the format"},
		{RowsFile, `"phase":"measure"`, `"phase":"other"`, "rows.jsonl, line 3: there is no phase"},
		{RowsFile, `"length":1000000`, `"length":0`, "line 2: a row without time or length"},
		{RowsFile, `"length":1000000`, `"length":9007199254740993`, "line 2: a time is too large"},
		{RowsFile, `"start":`, `"start":9`, "line 1: a time is too large"},
		{RowsFile, `"elapsed":1000000`, `"elapsed":9000000`, "line 3: the rows are not in the order of time"},
		{RowsFile, `"start":1795257054535000`, `"start":1795257054535001`, "rows.jsonl: the rows are of another part"},
		{RowsFile, `{"step"`, strings.Repeat(" ", maxLine) + `{"step"`, "line 2: it has more than"},
		{RowsFile, `{"step"`, `"step"`, "line 2: invalid character"},
		{LatenciesFile, "Tag=send", "Tag=sent", `latencies.hdr, line 12: the latency is "response"`},
		{LatenciesFile, "Tag=warmup-send,", "Tag=warmup-send", "it is not a line of a histogram log"},
		{LatenciesFile, "HISTFAAA", "HISTFAAB", "istogram"},
		{LatenciesFile, "BaseTime: 17", "BaseTime: 18", "latencies.hdr, line 3: the histograms are of a run that began at 18"},
	} {
		t.Run(c.file+" "+c.with[:min(len(c.with), 30)], func(t *testing.T) {
			t.Parallel()
			dir := write(t, sample(t, 8, 3, 20))
			edit(t, dir, c.file, c.old, c.with)
			for _, read := range []func(string) (*Result, error){Read, ReadHistograms} {
				_, err := read(dir)
				require.ErrorContains(t, err, c.says)
				var e *Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, dir, filepath.Dir(e.Path))
			}
		})
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, RowsFile), nil, 0o600))
	_, err := Read(dir)
	require.ErrorContains(t, err, "it has no head")
	require.NoError(t, os.Mkdir(filepath.Join(dir, ResultFile), 0o700))
	_, err = Read(dir)
	require.ErrorContains(t, err, "not a regular file")
	// A run that was killed in its first second, with histograms that cannot be read.
	dir = write(t, sample(t, 8, 3, 20))
	rows := musttest.Get(os.ReadFile(filepath.Join(dir, RowsFile)))(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, RowsFile), rows[:bytes.IndexByte(rows, '\n')+1], 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, ResultFile)))
	edit(t, dir, LatenciesFile, "BaseTime: 17", "BaseTime: 18")
	_, err = Read(dir)
	require.ErrorContains(t, err, "the histograms are of a run that began at 18")
}

// TestDigest: no change of result.json or of the rows goes unnoticed, unless it changes white space only. A result of an
// earlier version has no digest.
func TestDigest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, old, with string }{
		{ResultFile, `"perSecond": 20`, `"perSecond": 21`},
		{ResultFile, `"success": false`, `"success": true`},
		{ResultFile, `"lost": 2`, `"lost": 1`},
		{ResultFile, `"digest": "`, `"digest": "0`},
		{RowsFile, `"sent":20`, `"sent":21`},
		{RowsFile, `"cores":2`, `"cores":1`},
	} {
		dir := write(t, sample(t, 8, 3, 20))
		path := edit(t, dir, c.file, c.old, c.with)
		_, err := Read(dir)
		require.ErrorContains(t, err, ResultFile+": its digest does not match: it or rows.jsonl was changed", path)
		require.ErrorAs(t, err, new(*Error))
	}
	dir := write(t, sample(t, 8, 3, 20))
	edit(t, dir, RowsFile, "}\n", "}\r\n")
	edit(t, dir, ResultFile, "{\n", "{ ")
	musttest.Get(Read(dir))(t)
	path := filepath.Join(dir, ResultFile)
	text := digestLine.ReplaceAll(musttest.Get(os.ReadFile(path))(t), nil)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	require.Equal(t, sample(t, 8, 3, 20).Outcome.Warnings, musttest.Get(Read(dir))(t).Outcome.Warnings)
}

// Files that belong together are all there, and of one run: each error names the file.
func TestReadRefusesParts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{RowsFile, LatenciesFile} {
		dir := write(t, sample(t, 8, 3, 20))
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		_, err := Read(dir)
		require.ErrorContains(t, err, name+": it is missing, beside the other files of the result")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NotErrorIs(t, err, ErrNoResult)
	}
	// Of a run that began in the same second, with as many messages.
	dir, other := write(t, sample(t, 8, 3, 20)), write(t, sample(t, 9, 3, 20))
	require.NoError(t, os.Rename(filepath.Join(other, LatenciesFile), filepath.Join(dir, LatenciesFile)))
	_, err := Read(dir)
	require.ErrorContains(t, err, "latencies.hdr, line 6: the maximum is not that of the histogram")
}

// What runs write legitimately is read.
func TestReadTakes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Result){
		"a clock that was set back": func(r *Result) {
			r.Tester.ClockBackward, r.End = 3600*second, r.Start-3500*second
			r.Steps[0].End = r.End
		},
		"a clock that was adjusted": func(r *Result) { r.End = r.Start - 1 },
		"a success":                 func(r *Result) { r.Outcome.Success, r.Outcome.Status = true, 0 },
		"a threshold":               func(r *Result) { r.Outcome.Success, r.Outcome.Status = true, 3 },
		"interrupted":               func(r *Result) { r.Outcome.Success, r.Outcome.Status = true, 130 },
		"rows are missing":          func(r *Result) { r.Outcome.Success, r.Findings[0].Kind = true, RowsMissing },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := sample(t, 8, 3, 20)
			change(want)
			got := musttest.Get(ReadHistograms(write(t, want)))(t)
			require.Equal(t, asJSON(t, want), asJSON(t, got))
		})
	}
}

// FuzzDecode: histograms are read as HdrHistogram's library reads them, and refused where it refuses them.
func FuzzDecode(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 60, 3000} {
		text := musttest.Get(latencyOf(random, n, 1e6).Histogram.MarshalText())(f)
		f.Add(text)
		packed := musttest.Get(base64.StdEncoding.DecodeString(string(text)))(f)
		z := musttest.Get(zlib.NewReader(bytes.NewReader(packed[8:])))(f)
		plain := musttest.Get(io.ReadAll(z))(f)
		f.Add(plain)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, text := range [][]byte{text, packed(text)} {
			var got Histogram
			refused := got.UnmarshalText(text)
			want, err := hdrhistogram.Decode(text)
			if err != nil || want.LowestTrackableValue() != 1 || want.HighestTrackableValue() != MaxLatency ||
				want.SignificantFigures() != significantDigits {
				require.Error(t, refused)
				continue
			}
			if want.Max() > highest(place(MaxLatency)) {
				require.ErrorContains(t, refused, "above 24 hours")
				continue
			}
			require.NoError(t, refused)
			var bars []Bar
			for _, bar := range want.Distribution() {
				if bar.Count > 0 {
					bars = append(bars, Bar{bar.To, bar.Count})
				}
			}
			require.Equal(t, bars, got.Bars())
			require.Equal(t, want.TotalCount(), got.count)
		}
	})
}

// packed is a histogram with plain head and counts. The lengths are corrected.
func packed(plain []byte) []byte {
	plain = bytes.Clone(plain)
	if len(plain) >= headBytes {
		binary.BigEndian.PutUint32(plain[lengthAt:], uint32(len(plain)-headBytes))
	}
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write(plain) // into memory
	_ = w.Close()         // the same
	text := binary.BigEndian.AppendUint32(nil, outerCookie)
	text = binary.BigEndian.AppendUint32(text, uint32(z.Len()))
	return []byte(base64.StdEncoding.EncodeToString(append(text, z.Bytes()...)))
}

// The hash of a plan depends only on its meaning.
func TestHash(t *testing.T) {
	t.Parallel()
	hash := func(plan string) string {
		return musttest.Get(Hash(json.RawMessage(plan)))(t)
	}
	require.Equal(t, hash(`{"a":1,"b":"<"}`), hash(`{ "b": "\u003c", "a": 1 }`))
	require.NotEqual(t, hash(`{"a":9007199254740993}`), hash(`{"a":9007199254740992}`))
	require.NotEqual(t, hash(`{"a":1}`), hash(`{"a":"1"}`))
	require.Empty(t, hash(""))
	for _, plan := range []string{"{", "{}{}", "x"} {
		_, err := Hash(json.RawMessage(plan))
		require.Error(t, err)
	}
}

// FuzzRead: whatever is in the files of a folder, Read does not panic, and its result can be merged and written.
func FuzzRead(f *testing.F) {
	dir := write(f, sample(f, 8, 3, 5))
	var texts [][]byte
	for _, name := range []string{RowsFile, LatenciesFile, ResultFile} {
		text := musttest.Get(os.ReadFile(filepath.Join(dir, name)))(f)
		texts = append(texts, text)
	}
	f.Add(texts[0], texts[1], texts[2])
	f.Add(texts[0], texts[1], []byte(nil))
	f.Add([]byte(nil), []byte(nil), texts[2])
	f.Fuzz(func(t *testing.T, rows, latencies, result []byte) {
		dir := t.TempDir()
		for name, text := range map[string][]byte{RowsFile: rows, LatenciesFile: latencies, ResultFile: result} {
			if len(text) > 0 {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
			}
		}
		r, err := ReadHistograms(dir)
		if err != nil {
			return
		}
		first, other := *r, *r
		first.Shard, other.Shard = &Shard{1, 2}, &Shard{2, 2}
		musttest.Get(Merge(&first, &other))(t)
		musttest.Get(Encode(r, ""))(t)
	})
}

package page

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

// swept writes a sweep of 2 x 3 cells with two repeats each and known rates, and the results of its runs. One cell has
// failed; perfmq was the limit of the last, which also fails a threshold.
func swept(t *testing.T, dir string) *record.Sweep {
	t.Helper()
	s := &record.Sweep{
		Format: record.Format, Version: record.Version, ID: "x", Name: "demo/matrix", Repeats: 2,
		Axes: []record.Axis{{Name: "threads", Values: []string{"16", "64", "128"}}, {Name: "queues", Values: []string{"8", "32"}}},
	}
	s.Arrange(record.Cells(s.Axes))
	for i := range s.Runs {
		r := resultOf(t, usual())
		run := &s.Runs[i]
		path := filepath.Join(dir, filepath.FromSlash(run.Folder))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		r.RunID = fmt.Sprint(i + 1)
		run.State = record.Done
		rate := map[string]float64{"16": 1000, "64": 1990, "128": 2000}[run.Values["threads"]]
		if run.Values["queues"] == "32" {
			rate += 100
		}
		run.Figures = map[string]float64{
			"completed.avg": rate + 10*float64(run.Repeat), "completed.min": rate, "ack.p50": 1000 * rate / 10, "broker.cpu": rate / 1000, "broker.memory": 512e6,
		}
		kind := "broker"
		if run.Cell == 6 {
			kind = "machine"
		}
		run.SetLimits([]record.Limit{{Kind: kind, Text: "its answers got late"}})
		if run.Cell == 1 {
			run.Status = 1
		}
		r.Thresholds = []result.Threshold{{Threshold: "completed.avg < 2100", Metric: "completed.avg", Kept: run.Cell != 6}}
		write(t, path, r)
	}
	require.NoError(t, s.Write(dir))
	return s
}

// TestMatrix: charts and tables of a sweep have the medians of its cells and of the broker in them; failed runs are
// omitted.
func TestMatrix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := swept(t, dir)
	p := musttest.Get(Read(dir))(t)
	assert.Equal(t, "demo/matrix", p.Title)
	assert.Len(t, p.Runs, len(s.Runs))
	assert.Equal(t, "threads=16 queues=8 / 1", p.Runs[0].Name)
	d := p.swept()
	assert.Equal(t, []string{"completed.avg", "ack.p50", "completed.min", "broker.cpu", "broker.memory"}, d.Metrics)
	assert.Empty(t, d.Cells[0].Figures)
	assert.Equal(t, sweepFigure{record.Spread{Minimum: 2110, Median: 2115, Maximum: 2120, N: 2}, "at least 2,115/s ±0.2% (2 runs)", true, "broken"}, d.Cells[5].Figures["completed.avg"])
	assert.Equal(t, "kept", d.Cells[1].Figures["completed.avg"].Judged)
	assert.Empty(t, d.Cells[1].Figures["ack.p50"].Judged)

	tables := p.sweepTables()
	assert.Equal(t, []string{"cell", "runs", "failed", "completed.avg", "ack.p50", "completed.min"}, tables[0].Head)
	assert.Equal(t, []string{"threads=16 queues=8", "0", "2", "-", "-", "-"}, tables[0].Rows[0])
	assert.Equal(t, []string{"threads=16 queues=32", "2", "0", "1,115/s ±0.4% (2 runs)", "110 ms ±0.0% (2 runs)", "1,100/s ±0.0% (2 runs)"}, tables[0].Rows[1])
	assert.Equal(t, []string{"cell", "runs", "failed", "cpu", "memory"}, tables[1].Head)
	assert.Equal(t, []string{"threads=16 queues=8", "0", "2", "-", "-"}, tables[1].Rows[0])
	assert.Equal(t, []string{"threads=16 queues=32", "2", "0", "1.10 ±0.0% (2 runs)", "512 MB ±0.0% (2 runs)"}, tables[1].Rows[1])
	v := p.sweepVerdict()
	assert.Equal(t, []string{"bad", "2 of 12 runs failed", "Perfmq was the limit of 2 of 10 runs, so their rates are lower bounds"}, []string{v.Mark, v.Verdict, v.Reason})
	assert.Equal(t, []string{
		"6 cells, 10 of 12 runs counted, 2 failed.", "Highest completed.avg: at least 2,115/s ±0.2% (2 runs) at threads=128 queues=32.",
	}, v.Numbers)

	s.Runs = s.Runs[len(s.Runs)-1:] // perfmq was its limit
	v = (&Page{sweep: s}).sweepVerdict()
	assert.Equal(t, []string{"warn", "1 run succeeded"}, []string{v.Mark, v.Verdict})

	var b bytes.Buffer
	require.NoError(t, p.HTML(&b))
	assert.Contains(t, b.String(), `<td>1,115/s ±0.4% (2 runs)</td>`)
	b.Reset()
	require.NoError(t, p.Markdown(&b))
	assert.Contains(t, b.String(), "| threads=16 queues=32 | 2 | 0 | 1,115/s ±0.4% (2 runs) | 110 ms ±0.0% (2 runs) | 1,100/s ±0.0% (2 runs) |")
	assert.Contains(t, b.String(), "| threads=16 queues=32 | 2 | 0 | 1.10 ±0.0% (2 runs) | 512 MB ±0.0% (2 runs) |")
	assert.Contains(t, b.String(), "# demo/matrix\n\n**2 of 12 runs failed**", "the sweep comes first")
	assert.NotContains(t, b.String(), "## threads=16 queues=8 / 1", "its runs are rows")
	b.Reset()
	require.NoError(t, p.CSV(&b))
	lines := musttest.Get(csv.NewReader(&b).ReadAll())(t)
	require.Len(t, lines, 1+12+6, "a head, the runs, the cells")
	got := map[string]string{}
	for i, name := range lines[0] {
		got[name] = lines[14][i]
	}
	for name, want := range map[string]string{
		"run": "threads=16 queues=32", "verdict": "median of 2 runs", "completed_avg": "1115.000", "ack_p50_ms": "110.000", "broker_cpu_cores": "1.100",
		"broker_memory_bytes": "512000000", "broker_load": "", "sent": "",
	} {
		assert.Equal(t, want, got[name], name)
	}
}

// TestHostileSweep: the file of a sweep may have any content.
func TestHostileSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := swept(t, dir)
	const evil = "</script><img src=x onerror=alert(1)>\u202e"
	s.Name, s.Axes[0].Name = evil, evil
	s.Runs[2].Values = map[string]string{evil: evil}
	require.NoError(t, s.Write(dir))
	p := musttest.Get(Read(dir))(t)
	var b bytes.Buffer
	require.NoError(t, p.HTML(&b))
	assert.NotContains(t, b.String(), "<img")
	assert.NotContains(t, b.String(), "\u202e")
	assert.Equal(t, 1+len((&view{Several: true}).scriptNames()), strings.Count(b.String(), "</script"))

	s.Runs[0].Folder = "../elsewhere"
	require.NoError(t, s.Write(dir))
	_, err := Read(dir)
	require.Error(t, err)
}

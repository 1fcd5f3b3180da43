package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/sweep/record"
)

// swept writes a sweep of 2 x 3 cells with two repeats each and known rates, and the results of its runs. One cell has
// failed.
func swept(t *testing.T, dir string) *record.Sweep {
	t.Helper()
	s := &record.Sweep{
		Format: record.Format, Version: record.Version, ID: "x", Name: "demo/matrix", Repeats: 2,
		Axes: []record.Axis{{Name: "threads", Values: []string{"16", "64", "128"}}, {Name: "queues", Values: []string{"8", "32"}}},
	}
	s.Arrange(record.Cells(s.Axes, nil))
	r := resultOf(t, usual())
	for i := range s.Runs {
		run := &s.Runs[i]
		path := filepath.Join(dir, filepath.FromSlash(run.Folder))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		r.RunID = fmt.Sprint(i + 1)
		write(t, path, r)
		run.State = record.Done
		rate := map[string]float64{"16": 1000, "64": 1990, "128": 2000}[run.Values["threads"]]
		if run.Values["queues"] == "32" {
			rate += 100
		}
		run.Figures = map[string]float64{"completed.avg": rate + 10*float64(run.Repeat), "ack.p50": 1000 * rate / 10}
		run.Limits = []record.Limit{{Kind: "broker", Text: "its answers got late"}}
		if run.Cell == 1 {
			run.Status = 1
		}
	}
	require.NoError(t, s.Write(dir))
	return s
}

// TestMatrix: the lines and the table of a sweep are the medians of its cells; failed runs are omitted.
func TestMatrix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := swept(t, dir)
	p, err := Read(dir)
	require.NoError(t, err)
	assert.Equal(t, "demo/matrix", p.Title)
	assert.Len(t, p.Runs, len(s.Runs))
	assert.Equal(t, "threads=16 queues=8 / 1", p.Runs[0].Name)
	grids := p.grids()
	require.Len(t, grids, 2)
	text, err := json.Marshal(grids[0])
	require.NoError(t, err)
	assert.JSONEq(t, `{"name":"completed.avg","unit":"messages/s","axis":"threads","values":["16","64","128"],"lines":[
		{"chart":"","name":"queues=8","unit":"","value":[null,2005,2015],"low":[null,2000,2010],"high":[null,2010,2020]},
		{"chart":"","name":"queues=32","unit":"","value":[1115,2105,2115],"low":[1110,2100,2110],"high":[1120,2110,2120]}]}`, string(text))
	table := p.cells()
	assert.Equal(t, []string{"cell", "runs", "failed", "completed.avg", "ack.p50"}, table.Head)
	assert.Equal(t, []string{"threads=16 queues=8", "0", "2", "-", "-"}, table.Rows[0])
	assert.Equal(t, []string{"threads=16 queues=32", "2", "0", "1,115/s (-0% +0%)", "110 ms"}, table.Rows[1])

	said := strings.Join(p.sentences(), "\n")
	assert.Contains(t, said, "6 cells, 10 of 12 runs counted, 2 failed.")

	found := &record.Sweep{Axes: []record.Axis{{Name: "x", Values: []string{"1", "2"}}}, Repeats: 1}
	found.Arrange(record.Cells(found.Axes, nil))
	for i := range found.Runs {
		found.Runs[i].State, found.Runs[i].Figures = record.Done, map[string]float64{"completed.avg": 5, "ack.p50": 5}
	}
	found.Runs[0].SetLimits([]record.Limit{{Kind: "machine", Text: "others"}})
	bounded := &Page{sweep: found}
	assert.Equal(t, [][]string{{"x=1", "1", "0", "at least 5/s", "5 us"}, {"x=2", "1", "0", "5/s", "5 us"}}, bounded.cells().Rows)
	assert.Equal(t, []string{"2 cells, 2 of 2 runs counted, 0 failed; perfmq was the limit of 1 of 2 runs, so their rates are lower bounds."}, bounded.sentences())

	var b bytes.Buffer
	require.NoError(t, p.HTML(&b))
	assert.Contains(t, b.String(), `<td>2,115/s (-0% &#43;0%)</td>`)
	b.Reset()
	require.NoError(t, p.Markdown(&b))
	assert.Contains(t, b.String(), "| threads=16 queues=32 | 2 | 0 | 1,115/s (-0% +0%) | 110 ms |")
	assert.Contains(t, b.String(), "# demo/matrix\n\n- 6 cells, 10 of 12 runs counted", "the sweep comes first")
	assert.NotContains(t, b.String(), "## threads=16 queues=8 / 1", "its runs are rows")
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
	p, err := Read(dir)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, p.HTML(&b))
	assert.NotContains(t, b.String(), "<img")
	assert.NotContains(t, b.String(), "\u202e")
	assert.Equal(t, 1+len((&view{}).scripts()), strings.Count(b.String(), "</script"))

	s.Runs[0].Folder = "../elsewhere"
	require.NoError(t, s.Write(dir))
	_, err = Read(dir)
	require.Error(t, err)
}

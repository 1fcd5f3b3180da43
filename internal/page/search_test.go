package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

// searchedIn writes a search of five loads: 100 and 200 were kept, 400 and 300 were not, 200 was held. A load of rate r
// measured an ack.p99 of r ms.
func searchedIn(t *testing.T, dir string) record.Search {
	t.Helper()
	o := record.Search{
		Thresholds: []string{"ack.p99 < 250ms", "completed.avg >= 99% of target"},
		Rate:       200, Above: 300, Held: true, Complete: true, Points: []record.Point{
			{Rate: 100, Kept: true},
			{Rate: 200, Kept: true},
			{Rate: 400, Why: "ack.p99 < 250ms: 400ms", Limit: "perfmq's processors", Tester: true},
			{Rate: 300, Why: "ack.p99 < 250ms: 300ms", Limit: "the broker: its answers got late"},
			{Rate: 200, Kept: true, Hold: true},
		},
	}
	o.Failed = o.Points[3]
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for i, p := range o.Points {
		loadIn(t, filepath.Join(dir, record.PointFolder(i+1, p.Rate)), i+1, p.Rate)
	}
	note(t, dir, o)
	return o
}

func loadIn(t *testing.T, dir string, number int, rate float64) {
	t.Helper()
	loads := usual()
	for i := range loads {
		for k := range loads[i].ack {
			loads[i].ack[k] = int64(1000 * rate)
		}
	}
	r := resultOf(t, loads)
	r.RunID = fmt.Sprint(number)
	if rate >= 250 {
		r.Outcome.Status = 3
	}
	later := int64(number) * 10 * second
	r.Start, r.End = r.Start+later, r.End+later
	for i := range r.Rows {
		r.Rows[i].Time += later
	}
	ack := 1000 * rate
	r.Thresholds = []result.Threshold{
		{Threshold: "ack.p99 < 250ms", Metric: "ack.p99", Unit: "us", Measured: &ack, Kept: rate < 250},
		{Threshold: "completed.avg >= 97% of target", Metric: "completed.avg", Unit: "messages/s", Measured: &rate, Kept: true},
	}
	write(t, dir, r)
}

func note(t *testing.T, dir string, o record.Search) {
	t.Helper()
	text := musttest.Get(json.Marshal(o))(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, record.SearchFile), text, 0o600))
}

// TestSearch: the page of a search has the outcome first, then a row for each load, and draws all of them.
func TestSearch(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "found")
	searchedIn(t, dir)
	p := musttest.Get(Read(dir))(t)
	assert.Equal(t, "The highest rate: found", p.Title)
	v := p.view()
	assert.Equal(t, []string{"good", "Maximum: 200 msg/s", "at 300 msg/s: ack.p99 < 250ms: 300ms"}, []string{v.Lead.Mark, v.Lead.Verdict, v.Lead.Reason})
	assert.Equal(t, []string{"the broker: its answers got late"}, v.Lead.Limits)
	assert.Equal(t, "The thresholds: ack.p99 < 250ms, completed.avg >= 99% of target. Of few messages, two may be missing.", v.Lead.Numbers[0])
	assert.Equal(t, "5 loads tried; perfmq was the limit of 1 of them, not the broker.", v.Lead.Numbers[1])
	assert.Equal(t, []string{"load", "rate", "verdict", "ack.p99", "completed.avg", "why not", "limit"}, v.table("Rates tried").Head)
	assert.Equal(t, [][]string{
		{"1", "100/s", "pass", "100 ms", "100/s", "-", "-"},
		{"2", "200/s", "pass", "200 ms", "200/s", "-", "-"},
		{"3", "400/s", "undecided", "400 ms", "400/s", "ack.p99 < 250ms: 400ms", "perfmq's processors"},
		{"4", "300/s", "fail", "300 ms", "300/s", "ack.p99 < 250ms: 300ms", "the broker: its answers got late"},
		{"5", "200/s", "pass, for longer", "200 ms", "200/s", "-", "-"},
	}, v.table("Rates tried").Rows)
	assert.Empty(t, v.table("Side by side").Rows, "the loads of a search are no repeats")

	runs := dataOf(p).Runs
	assert.Equal(t, []any{5, "5: 200/s, held"}, []any{len(runs), runs[4].Name})
	var page, text bytes.Buffer
	require.NoError(t, p.HTML(&page))
	require.NoError(t, p.Markdown(&text))
	assert.Contains(t, page.String(), "Maximum: 200 msg/s")
	assert.Contains(t, text.String(), "**Maximum: 200 msg/s**")
}

// TestGrowingSearch: the page of an unfinished search shows the judged loads.
func TestGrowingSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := searchedIn(t, dir)
	o.Complete, o.Held, o.Points = false, false, o.Points[:4]
	note(t, dir, o)
	p := musttest.Get(Read(dir))(t)
	v := p.view()
	assert.Equal(t, []string{"warn", "The search has not come to its end; 200 msg/s had passed"}, []string{v.Lead.Mark, v.Lead.Verdict})
	assert.Len(t, v.table("Rates tried").Rows, 4)
}

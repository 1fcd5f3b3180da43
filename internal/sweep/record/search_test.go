package record

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

func TestWords(t *testing.T) {
	failed := Point{Rate: 12_300, Why: "ack.p99 < 1ms: 7ms"}
	tester := Point{Rate: 12_300, Tester: true, Limit: "perfmq's processors"}
	for _, c := range []struct {
		kind      string
		text, why string
		of        Search
	}{
		{Maximum, "maximum: 12,000 msg/s", "at 12,300 msg/s: ack.p99 < 1ms: 7ms", Search{Rate: 12_000, Above: 12_300, Held: true, Failed: failed, Complete: true}},
		{AtLeast, "at least 12,000 msg/s", "at 12,300 msg/s the limit was perfmq's processors", Search{Rate: 12_000, Above: 12_300, Held: true, Failed: tester, Complete: true}},
		{AtLeast, "at least 100,000,000 msg/s", "that is as far as the search goes", Search{Rate: 1e8, Held: true, Complete: true}},
		{Nothing, "not even 12,300 msg/s passes the thresholds", "ack.p99 < 1ms: 7ms", Search{Above: 12_300, Failed: failed, Complete: true}},
		{Undecided, "undecided: perfmq was the limit of 2 of 3 loads, and no rate was held", "at 12,300 msg/s the limit was perfmq's processors", Search{Above: 12_300, Failed: tester, Complete: true, Points: []Point{{Rate: 20_000}, tester, tester}}},
		{Undecided, "undecided: perfmq was the limit of 2 of 3 loads, and no rate was held; 400 msg/s had passed", "at 12,300 msg/s the limit was perfmq's processors", Search{Rate: 400, Above: 12_300, Failed: tester, Complete: true, Points: []Point{{Rate: 400, Kept: true}, tester, tester}}},
		{NotSteady, "no rate was held: the broker, or the machine, is not steady; the last that was tried is 12,300 msg/s", "ack.p99 < 1ms: 7ms", Search{Rate: 400, Above: 12_300, Failed: failed, Complete: true}},
		{Open, "the search has not come to its end; 0.5 msg/s had passed", "", Search{Rate: 0.5}},
		{Open, "the search has not come to its end; no rate had passed", "", Search{}},
	} {
		text, why := c.of.Words()
		require.Equal(t, []string{c.kind, c.text, c.why}, []string{c.of.Kind(), text, why})
	}
}

// TestReadSearch: impossible outcomes are refused.
func TestReadSearch(t *testing.T) {
	dir := t.TempDir()
	require.False(t, IsSearch(dir))
	_, err := ReadSearch(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	for text, want := range map[string]string{
		`{`:                         "search.json: ",
		`{"rate":0,"held":true}`:    "cannot have been held",
		`{"points":[{"rate":-1}]}`:  "point 1 has a rate of -1",
		strings.Repeat(" ", 17<<20): "has more than",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, SearchFile), []byte(text), 0o600))
		_, err := ReadSearch(dir)
		require.ErrorContains(t, err, want)
	}
	require.True(t, IsSearch(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, SearchFile), []byte(`{"demands":["ack.p99 < 1s"],"rate":5,"held":true,"points":[{"rate":5,"kept":true}]}`), 0o600))
	o := musttest.Get(ReadSearch(dir))(t)
	require.Equal(t, Search{Thresholds: []string{"ack.p99 < 1s"}, Rate: 5, Held: true, Points: []Point{{Rate: 5, Kept: true}}}, *o)
}

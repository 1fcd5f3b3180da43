package search_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/search"
)

func TestWords(t *testing.T) {
	failed := search.Point{Rate: 12_300, Why: "ack.p99 < 1ms: 7ms"}
	tester := search.Point{Rate: 12_300, Tester: true, Limit: "the tester's processors"}
	for _, c := range []struct {
		kind      search.Kind
		text, why string
		of        search.Found
	}{
		{search.Maximum, "maximum: 12,000 msg/s", "at 12,300 msg/s: ack.p99 < 1ms: 7ms", search.Found{Rate: 12_000, Above: 12_300, Held: true, Failed: failed, Complete: true}},
		{search.AtLeast, "at least 12,000 msg/s", "at 12,300 msg/s the limit was the tester's processors", search.Found{Rate: 12_000, Above: 12_300, Held: true, Failed: tester, Complete: true}},
		{search.AtLeast, "at least 100,000,000 msg/s", "that is as far as the search goes", search.Found{Rate: 1e8, Held: true, Complete: true}},
		{search.Nothing, "not even 12,300 msg/s passes the thresholds", "ack.p99 < 1ms: 7ms", search.Found{Above: 12_300, Failed: failed, Complete: true}},
		{search.Undecided, "undecided: perfmq was the limit of 2 of 3 loads, and no rate was held", "at 12,300 msg/s the limit was the tester's processors", search.Found{Above: 12_300, Failed: tester, Complete: true, Points: []search.Point{{Rate: 20_000}, tester, tester}}},
		{search.Undecided, "undecided: perfmq was the limit of 2 of 3 loads, and no rate was held", "at 12,300 msg/s the limit was the tester's processors", search.Found{Rate: 400, Above: 12_300, Failed: tester, Complete: true, Points: []search.Point{{Rate: 400, Kept: true}, tester, tester}}},
		{search.NotSteady, "no rate was held: the broker, or the machine, is not steady; the last that was tried is 12,300 msg/s", "ack.p99 < 1ms: 7ms", search.Found{Rate: 400, Above: 12_300, Failed: failed, Complete: true}},
		{search.Open, "the search has not come to its end; 0.5 msg/s had passed", "", search.Found{Rate: 0.5}},
		{search.Open, "the search has not come to its end; no rate had passed", "", search.Found{}},
	} {
		text, why := c.of.Words()
		require.Equal(t, []string{string(c.kind), c.text, c.why}, []string{string(c.of.Kind()), text, why})
	}
}

// TestRead: what is not the outcome of a search is refused.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	require.False(t, search.IsSearch(dir))
	_, err := search.Read(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	for text, want := range map[string]string{
		`{`:                         "search.json: ",
		`{"rate":0,"held":true}`:    "cannot have been held",
		`{"points":[{"rate":-1}]}`:  "point 1 has a rate of -1",
		strings.Repeat(" ", 17<<20): "larger than",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, search.File), []byte(text), 0o600))
		_, err := search.Read(dir)
		require.ErrorContains(t, err, want)
	}
	require.True(t, search.IsSearch(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, search.File), []byte(`{"demands":["ack.p99 < 1s"],"rate":5,"held":true,"points":[{"rate":5,"kept":true}]}`), 0o600))
	o, err := search.Read(dir)
	require.NoError(t, err)
	require.Equal(t, search.Outcome{Demands: []string{"ack.p99 < 1s"}, Found: &search.Found{Rate: 5, Held: true, Points: []search.Point{{Rate: 5, Kept: true}}}}, *o)
}

// TestNote: whoever is told of the findings has each load, and an error of theirs ends the search.
func TestNote(t *testing.T) {
	var noted []int
	full := errors.New("the disk is full")
	f, err := search.Max(t.Context(), search.Config{First: 10, Note: func(so *search.Found) error {
		require.False(t, so.Complete)
		if noted = append(noted, len(so.Points)); len(noted) == 3 {
			return full
		}
		return nil
	}}, capacity(25))
	require.ErrorIs(t, err, full)
	require.Equal(t, []int{1, 2, 3}, noted)
	require.False(t, f.Complete)

	f, err = search.Max(t.Context(), search.Config{}, capacity(25))
	require.NoError(t, err)
	require.True(t, f.Complete)
	f, err = search.Max(t.Context(), search.Config{}, capacity(0))
	require.ErrorIs(t, err, search.ErrNothing)
	require.True(t, f.Complete)
	f, err = search.Max(t.Context(), search.Config{}, func(context.Context, float64, bool) (search.Point, error) {
		return search.Point{}, full
	})
	require.ErrorIs(t, err, full)
	require.False(t, f.Complete)
}

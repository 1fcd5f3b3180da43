package compare

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	sweeps "github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

// searched makes the folder of a search that held a rate; a negative one was not held, and above 1e6 the tester was the
// limit of a thousandth of it.
func searched(t *testing.T, dir string, rate float64) {
	t.Helper()
	f := sweeps.Found{Rate: rate, Above: 2 * rate, Held: true}
	switch {
	case rate < 0:
		f = sweeps.Found{Complete: true, Above: 10, Failed: sweeps.Point{Why: "ack.p99 < 1ms: 7ms"}}
	case rate > 1e6:
		f.Rate, f.Failed.Tester = rate/1000, true
	}
	text, err := json.Marshal(f)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, sweeps.SearchFile), text, 0o600))
}

// searches makes a folder of searches.
func searches(t *testing.T, rates ...float64) Set {
	t.Helper()
	dir := t.TempDir()
	for i, rate := range rates {
		searched(t, filepath.Join(dir, fmt.Sprint(i)), rate)
	}
	s, err := Read(dir, nil)
	require.NoError(t, err)
	return s
}

// TestSearches: the rates that searches found are compared as other figures are. One that is the least that it may be
// tells no difference that a higher one would change, and one that was not held is none.
func TestSearches(t *testing.T) {
	low, high := []float64{100, 101, 102, 103, 104}, []float64{200, 201, 202, 203, 204}
	bound := func(rates []float64) []float64 {
		return append(append([]float64(nil), rates[:4]...), 1000*rates[4]*100)
	}
	atLeast := func(rates []float64) []float64 {
		list := bound(rates)
		list[4] = 1000 * 5000 // at least 5000
		return list
	}
	for _, c := range []struct {
		name    string
		a, b    []float64
		verdict string
	}{
		{"better", low, high, Better},
		{"worse", high, low, Worse},
		{"the same", low, low, Same},
		{"better at least", low, atLeast(high), Better},
		{"perhaps not worse", append(high, 205), atLeast(low), Bound},
		{"perhaps not better", atLeast(low), append(high, 205), Bound},
		{"worse than at least", atLeast(high), low, Worse},
		{"perhaps not the same", atLeast(low), atLeast(low), Bound},
		{"too few", low[:2], high[:2], TooFew},
		{"not held", low, append([]float64{-1}, high...), Better},
		{"never held", low, []float64{-1, -1, -1, -1, -1}, Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			sets := []Set{searches(t, c.a...), searches(t, c.b...)}
			rows := New(sets, metrics(t, Usual()...)).Rows
			require.Len(t, rows, 1)
			require.Equal(t, sweeps.FoundMetric, rows[0].Name)
			require.Equal(t, c.verdict, rows[0].Cells[1].Verdict)
		})
	}

	never := []Set{searches(t, low...), searches(t, -1, -1)}
	require.Equal(t, []string{never[1].Name + ": no search found a rate; the first: not even 10 msg/s passes the thresholds: ack.p99 < 1ms: 7ms"},
		New(never, nil).Notes())
}

// made makes the folder of a sweep of searches, with these rates of the repeats of one cell.
func made(t *testing.T, axes []sweeps.Axis, rates ...float64) string {
	t.Helper()
	dir := t.TempDir()
	s := &sweeps.Sweep{Format: sweeps.Format, Version: sweeps.Version, Repeats: len(rates), Axes: axes}
	s.Arrange(sweeps.Cells(s.Axes, nil))
	for i := range s.Runs {
		r := &s.Runs[i]
		r.State = sweeps.Done
		searched(t, filepath.Join(dir, r.Folder), rates[r.Repeat-1])
	}
	require.NoError(t, s.Write(dir))
	return dir
}

// TestSweeps: the repeats of a sweep of one cell are compared, and one of several cells is refused.
func TestSweeps(t *testing.T) {
	low, high := made(t, nil, 100, 101, 102, 103, 104, 105), made(t, nil, 200, 201, 202, 203, 204, 205)
	a, err := Read(low, nil)
	require.NoError(t, err)
	b, err := Read(high, nil)
	require.NoError(t, err)
	rows := New([]Set{a, b}, metrics(t, Usual()...)).Rows
	require.Len(t, rows, 1)
	require.Equal(t, []any{102.5, 202.5, Better}, []any{rows[0].Cells[0].Median, rows[0].Cells[1].Median, rows[0].Cells[1].Verdict})

	_, err = Read(made(t, []sweeps.Axis{{Name: "threads", Values: []string{"1", "2"}}}, 5), nil)
	require.ErrorContains(t, err, "is a sweep with several cells")
}

// TestSweepThatGoesOn: a sweep that has not ended is refused.
func TestSweepThatGoesOn(t *testing.T) {
	dir := made(t, nil, 5, 6)
	s, err := sweeps.ReadSweep(dir)
	require.NoError(t, err)
	s.Runs[1].State = sweeps.Running
	require.NoError(t, s.Write(dir))
	_, err = Read(dir, nil)
	require.ErrorIs(t, err, ErrIncomplete)

	require.NoError(t, os.WriteFile(filepath.Join(dir, s.Runs[0].Folder, sweeps.SearchFile), []byte("{\"held\": true, \"rate\": 0}"), 0o600))
	_, err = Read(filepath.Join(dir, s.Runs[0].Folder), nil)
	require.ErrorContains(t, err, "cannot have been held")
	_, err = Read(t.TempDir(), nil)
	require.ErrorIs(t, err, result.ErrNoResult)
}

package compare

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	sweeps "github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

// made makes the folder of a sweep, with these rates of the repeats of each cell.
func made(t *testing.T, axes []sweeps.Axis, rates ...float64) string {
	t.Helper()
	dir := t.TempDir()
	s := &sweeps.Sweep{Format: sweeps.Format, Version: sweeps.Version, Repeats: len(rates), Axes: axes}
	s.Arrange(sweeps.Cells(s.Axes))
	for i := range s.Runs {
		r := &s.Runs[i]
		r.State = sweeps.Done
		w, err := result.NewWriter(filepath.Join(dir, r.Folder))
		require.NoError(t, err)
		hash, err := result.Hash([]byte("{}"))
		require.NoError(t, err)
		head := result.Head{Format: result.Format, Version: result.Version, RunID: r.Folder, Start: 1e15, Plan: []byte("{}"), PlanHash: hash}
		require.NoError(t, w.Start(head))
		of := run(rates[r.Repeat-1], 5)
		of.Head, of.End, of.Latencies = head, head.Start, result.Latencies{}
		require.NoError(t, w.Finish(*of))
		require.NoError(t, w.Close())
	}
	require.NoError(t, s.Write(dir))
	return dir
}

// TestSweeps: the repeats of a sweep of one cell are compared. Several cells, a search, and a sweep without an end are
// refused.
func TestSweeps(t *testing.T) {
	low, high := made(t, nil, 100, 101, 102, 103, 104, 105), made(t, nil, 200, 201, 202, 203, 204, 205)
	a, err := Read(low)
	require.NoError(t, err)
	b, err := Read(high)
	require.NoError(t, err)
	rows := New([]Set{a, b}, Usual()).Rows
	require.Len(t, rows, 1)
	require.Equal(t, []any{102.5, 202.5, Better}, []any{rows[0].Cells[0].Median, rows[0].Cells[1].Median, rows[0].Cells[1].Verdict})

	_, err = Read(made(t, []sweeps.Axis{{Name: "threads", Values: []string{"1", "2"}}}, 5))
	require.ErrorContains(t, err, "is a sweep with several cells")

	search := t.TempDir()
	require.NoError(t, (&sweeps.Search{Complete: true}).Write(search))
	_, err = Read(search)
	require.ErrorContains(t, err, "is a search")

	unfinished, err := sweeps.ReadSweep(low)
	require.NoError(t, err)
	unfinished.Runs[1].State = sweeps.Running
	require.NoError(t, unfinished.Write(low))
	_, err = Read(low)
	require.ErrorIs(t, err, ErrIncomplete)
	_, err = Read(t.TempDir())
	require.ErrorIs(t, err, result.ErrNoResult)
}

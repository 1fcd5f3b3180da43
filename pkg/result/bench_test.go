package result

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkRow writes a row of four latencies of 3000 values: the cost of a run per second.
func BenchmarkRow(b *testing.B) {
	r := sample(b, 5, 3, 3000)
	w, err := NewWriter(filepath.Join(b.TempDir(), "result"))
	require.NoError(b, err)
	require.NoError(b, w.Start(r.Head))
	row := r.Rows[2]
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		row.Elapsed = int64(i+1) * second
		require.NoError(b, w.Row(row))
	}
	require.NoError(b, w.Close())
}

// BenchmarkReadDay reads a result with the rows and histograms of a day.
func BenchmarkReadDay(b *testing.B) {
	dir := write(b, sample(b, 5, 3, 300))
	require.NoError(b, os.Remove(filepath.Join(dir, ResultFile))) // which has the counts of three rows
	for name, lines := range map[string]int{RowsFile: 1, LatenciesFile: 4} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		require.NoError(b, err)
		all := bytes.SplitAfter(text, []byte("\n")) // the last one is empty
		last := bytes.Join(all[len(all)-1-lines:], nil)
		require.NoError(b, os.WriteFile(path, append(text, bytes.Repeat(last, 86_400)...), 0o600))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		_, err := Read(dir)
		require.NoError(b, err)
	}
}

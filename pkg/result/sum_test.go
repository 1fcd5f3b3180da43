package result

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSum: the sum of the rows of a run equals the sum that Read returns for its folder, and the warm-up is apart.
func TestSum(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r := sample(t, 7, 6, 20)
	w, err := NewWriter(dir)
	require.NoError(t, err)
	require.NoError(t, w.Start(r.Head))
	s := NewSum(r.Head)
	for i := range r.Rows {
		require.NoError(t, s.Add(&r.Rows[i]))
		require.NoError(t, w.Row(r.Rows[i]))
	}
	require.NoError(t, w.Close())

	var warmup Latencies
	read, err := Read(dir, WarmupLatencies(&warmup))
	require.NoError(t, err)
	got, gotWarmup := s.Result()
	assert.Equal(t, read.Total, got.Total)
	assert.Equal(t, asJSON(t, read.Latencies), asJSON(t, got.Latencies))
	assert.Equal(t, asJSON(t, read.Steps), asJSON(t, got.Steps))
	assert.Equal(t, read.Tester, got.Tester)
	assert.Equal(t, read.End, got.End)
	assert.False(t, got.Complete)
	assert.Equal(t, asJSON(t, warmup), asJSON(t, gotWarmup))
	assert.Equal(t, int64(20), warmup[Ack].Count)
	assert.Equal(t, int64(22), warmup[Transfer].Count, "with those that came after the warm-up")

	require.NoError(t, s.Add(&r.Rows[5])) // a returned sum stays as it is
	assert.Equal(t, read.Total, got.Total)
	assert.Equal(t, int64(100), got.Latencies[Ack].Histogram.Count())
}

// TestWarmupLatencies: they are the same of a complete result, of which nothing behind the warm-up is read.
func TestWarmupLatencies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r := sample(t, 7, 6, 20)
	w, err := NewWriter(dir)
	require.NoError(t, err)
	require.NoError(t, w.Start(r.Head))
	for i := range r.Rows {
		require.NoError(t, w.Row(r.Rows[i]))
	}
	require.NoError(t, w.Finish(*r))
	require.NoError(t, w.Close())

	var whole, head Latencies
	_, err = Read(dir, WarmupLatencies(&whole), RowHistograms())
	require.NoError(t, err)
	_, err = Read(dir, WarmupLatencies(&head))
	require.NoError(t, err)
	assert.Equal(t, whole, head)
	assert.Equal(t, int64(22), head[Transfer].Count)
	assert.Equal(t, int64(22), head[Transfer].Histogram.Count())
}

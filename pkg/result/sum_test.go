package result

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestSum: the sum of the rows of a run equals the sum that Read returns for its folder, without the warm-up.
func TestSum(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r := sample(t, 7, 6, 20)
	w := musttest.Get(NewWriter(dir))(t)
	require.NoError(t, w.Start(r.Head))
	got := NewSum(r.Head)
	for i := range r.Rows {
		got.AddRow(&r.Rows[i])
		require.NoError(t, w.Row(r.Rows[i]))
	}
	require.NoError(t, w.Close())

	read := musttest.Get(Read(dir))(t)
	assert.Equal(t, read.Total, got.Total)
	assert.Equal(t, asJSON(t, read.Latencies), asJSON(t, got.Latencies))
	assert.Equal(t, asJSON(t, read.Steps), asJSON(t, got.Steps))
	assert.Equal(t, read.Tester, got.Tester)
	assert.Equal(t, read.End, got.End)
	assert.False(t, got.Complete)
	assert.Equal(t, int64(100), got.Latencies[Ack].Histogram.Count())
}

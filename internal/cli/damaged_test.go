package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// TestDamagedResults: report, compare and merge refuse the same folders, and name the file and what to do.
func TestDamagedResults(t *testing.T) {
	t.Parallel()
	const whole = "the files were changed or are not complete"
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		says   []string
	}{
		{"no rows", remove(result.RowsFile), []string{result.RowsFile + ": it is missing", whole}},
		{"no latencies", remove(result.LatenciesFile), []string{result.LatenciesFile + ": it is missing", whole}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			good, bad := filepath.Join(makeRepeats(t, "good", "1ms", 1), "0"), filepath.Join(makeRepeats(t, "bad", "1ms", 1), "0")
			c.damage(t, bad)
			for _, args := range [][]string{
				{"report", "--format", "csv", bad},
				{"report", "--format", "csv", filepath.Dir(bad)},
				{"compare", good, bad},
				{"merge", bad},
			} {
				r := call(nil, args...)
				assert.Equal(t, exitUsage, r.status, args)
				assert.Empty(t, r.stdout, args)
				for _, text := range c.says {
					assert.Contains(t, r.stderr, text, args)
				}
			}
		})
	}
}

// TestKilledResult: after a kill, report and merge --partial read what is there.
func TestKilledResult(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "killed")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "before", "shard1"))))
	require.NoError(t, os.Remove(filepath.Join(dir, result.ResultFile)))
	text, err := os.ReadFile(filepath.Join(dir, result.LatenciesFile))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, result.LatenciesFile), text[:len(text)-10], 0o600))
	for _, args := range [][]string{{"report", "--format", "csv", dir}, {"merge", "--partial", dir}} {
		r := call(nil, args...)
		assert.NotEqual(t, exitUsage, r.status, r.stderr)
		assert.NotEmpty(t, r.stdout)
	}
}

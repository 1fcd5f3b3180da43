package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestDamagedResults: report, compare and merge refuse the same folders, and name the file and what to do.
func TestDamagedResults(t *testing.T) {
	t.Parallel()
	for file, says := range map[string]string{
		result.RowsFile: ": it is missing", result.LatenciesFile: ": it is missing", result.ResultFile: ": its digest does not match",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			good, bad := filepath.Join(makeRepeats(t, "good", "1ms", 1), "0"), filepath.Join(makeRepeats(t, "bad", "1ms", 1), "0")
			path := filepath.Join(bad, file)
			text := musttest.Get(os.ReadFile(path))(t)
			require.NoError(t, os.Remove(path))
			if file == result.ResultFile {
				changed := regexp.MustCompile(`("completed": )\d`).ReplaceAll(text, []byte("${1}7"))
				require.NotEqual(t, string(text), string(changed))
				require.NoError(t, os.WriteFile(path, changed, 0o600))
			}
			for _, args := range [][]string{
				{"report", "--format", "csv", bad},
				{"report", "--format", "csv", filepath.Dir(bad)},
				{"compare", good, bad},
				{"merge", bad},
			} {
				r := call(nil, args...)
				assert.Equal(t, exitUsage, r.status, args)
				assert.Empty(t, r.stdout, args)
				assert.Contains(t, r.stderr, file+says, args)
				assert.Contains(t, r.stderr, "the files were changed or are not complete", args)
			}
		})
	}
}

// TestKilledResult: after a kill, report and merge --partial read the rest.
func TestKilledResult(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "killed")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "before", "shard1"))))
	require.NoError(t, os.Remove(filepath.Join(dir, result.ResultFile)))
	text := musttest.Get(os.ReadFile(filepath.Join(dir, result.LatenciesFile)))(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, result.LatenciesFile), text[:len(text)-10], 0o600))
	for _, args := range [][]string{{"report", "--format", "csv", dir}, {"merge", "--partial", dir}} {
		r := call(nil, args...)
		assert.NotEqual(t, exitUsage, r.status, r.stderr)
		assert.NotEmpty(t, r.stdout)
	}
}

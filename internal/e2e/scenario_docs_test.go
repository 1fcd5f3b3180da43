//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestScenarioDocument: each example of docs/scenarios.md is a scenario without mistakes.
func TestScenarioDocument(t *testing.T) {
	t.Parallel()
	text := musttest.Get(os.ReadFile("../../docs/scenarios.md"))(t)
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	require.Greater(t, len(examples), 6)
	for i, example := range examples {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("example-%d.yaml", i+1))
		require.NoError(t, os.WriteFile(file, example[1], 0o600))
		r := run(t, limit, "run", "--dry-run", file)
		require.Equal(t, statusOK, r.status, "%s%s", example[1], r.stderr)
	}
}

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestJSONDescribesTheRun: the summary of --json has the same plan, versions and run number as the result.
func TestJSONDescribesTheRun(t *testing.T) {
	t.Parallel()
	dir, file := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run.json")
	r := call(nil, "mem", "client", "--message-count", "10", "--user", "u", "--password", "hunter2", "-o", "auth=u:hunter2", "--result", dir, "--json", file)
	require.Equal(t, exitOK, r.status, r.stderr)
	want := musttest.Get(result.Read(dir))(t)
	text := musttest.Get(os.ReadFile(file))(t)
	require.NotContains(t, string(text), "hunter2")
	var records []struct{ Details result.Result }
	require.NoError(t, json.Unmarshal(text, &records))
	got := records[len(records)-1].Details.Head
	require.JSONEq(t, string(want.Plan), string(got.Plan))
	got.Plan = want.Plan
	require.Equal(t, want.Head, got)
}

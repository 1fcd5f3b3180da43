package cli

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestResultsOfBefore: results of version f9c44c09 in testdata/before are read, reported, merged, compared and verified. They
// are never renewed.
func TestResultsOfBefore(t *testing.T) {
	before := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join("testdata", "before", name))
		}
		return paths
	}
	for _, c := range []struct {
		args     []string
		status   int
		contains []string
	}{
		{append([]string{"report", "--format", "csv"}, before("lost", "shard1", "shard2", "set1/1", "set1/2", "set2/1", "set2/2")...), exitOK, []string{",600,600,0,0,299.848,,,600,299.848,", ",4.519,"}},
		{append([]string{"report", "--format", "markdown"}, before("scenario")...), exitOK, []string{"| 1,628 |", "told", "290"}},
		{
			append([]string{"merge", "--result", filepath.Join(t.TempDir(), "both")}, before("shard1", "shard2")...), exitOK,
			[]string{"total received:      900", "19.86"},
		},
		{append([]string{"compare", "--unlike"}, before("set1", "set2")...), exitOK, []string{"ack.p50"}},
		{append([]string{"verify"}, before("lost/verify.pv")...), exitFailed, []string{"596"}},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			r := call(nil, c.args...)
			require.Equal(t, c.status, r.status, r.stderr)
			for _, text := range c.contains {
				require.Contains(t, r.stdout, text)
			}
		})
	}
}

package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

// Two processes with one --verify-file: neither side may be lost without a word. A file of an earlier run is replaced.
func TestVerifyFileOfTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "side.pv")
		with := func(p *flat) { p.Count, p.Verify, p.VerifyFile = 5, true, path }
		for range 2 {
			s, _ := run(t, newPlan(mem.New().Factory(), with), nil)
			require.True(t, s.Outcome.Success, s.Problems())
		}

		var other *stats.Summary
		rep := &stuckReporter{new(recorder), func() {
			if other == nil { // in the midst of the outer run
				other, _ = run(t, newPlan(mem.New().Factory(), with), nil)
			}
		}}
		s, err := carryOut(t.Context(), nil, newPlan(mem.New().Factory(), func(p *flat) {
			with(p)
			p.Count, p.Rate = 500, rate("100") // longer than the inner run takes
		}), rep)
		require.NoError(t, err)
		require.True(t, other.Outcome.Success, other.Problems())
		require.False(t, s.Outcome.Success)
		require.Contains(t, strings.Join(s.Problems(), "\n"), "another process wrote "+path+", so this side is in "+path+".")

		files, err := filepath.Glob(path + "*")
		require.NoError(t, err)
		require.Len(t, files, 2)
		require.ElementsMatch(t, []int64{5, 500}, []int64{count(t, files[0]), count(t, files[1])})
		require.NoError(t, os.Remove(path))
	})
}

func count(t *testing.T, path string) int64 {
	t.Helper()
	side, err := verify.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, side.Sent, 1)
	return int64(side.Sent[0].Count) //nolint:gosec // a few
}

//go:build unix

package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

//go:generate go test . -short -count=1 -update

var update = flag.Bool("update", false, "write the golden files anew")

func TestFeatures(t *testing.T) {
	for _, c := range []struct{ dir, failure string }{
		{"good", ""},
		{"broken", "STOMP on Artemis 1.0: Selector failed"},
	} {
		t.Run(c.dir, func(t *testing.T) {
			dir := filepath.Join("testdata", "features", c.dir)
			list := musttest.Get(readFeatures(dir))(t)
			table := featureTable{results: list}
			text := table.markdown() + "\n" + table.short()
			if c.failure == "" {
				require.NoError(t, table.failures())
			} else {
				require.EqualError(t, table.failures(), c.failure)
			}
			if *update {
				require.NoError(t, os.WriteFile(dir+".md", []byte(text), 0o600))
			}
			want := musttest.Get(os.ReadFile(dir + ".md"))(t)
			require.Equal(t, string(want), text)
		})
	}
	dir := t.TempDir()
	require.ErrorContains(t, run(t.Context(), []string{"features", "-results", dir}), "no results")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte("{"), 0o600))
	require.ErrorContains(t, run(t.Context(), []string{"features", "-results", dir}), "a.json")
}

// TestColumnsAreComplete: a feature that the suite tests has a column.
func TestColumnsAreComplete(t *testing.T) {
	seen := map[drivertest.Feature]bool{}
	for _, r := range featureColumns() {
		require.False(t, seen[r.feature])
		seen[r.feature] = true
	}
	for _, f := range drivertest.Features() {
		require.True(t, seen[f], "no column for %s", f)
	}
	require.Len(t, seen, len(drivertest.Features()))
}

package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestTable(t *testing.T) {
	for _, c := range []struct{ dir, failure string }{
		{"good", ""},
		{"broken", "STOMP on Artemis 1.0: Selector failed"},
	} {
		t.Run(c.dir, func(t *testing.T) {
			var out bytes.Buffer
			err := run(&out, false, []string{filepath.Join("testdata", c.dir)})
			if c.failure == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.failure)
			}
			out.WriteString("\n")
			_ = run(&out, true, []string{filepath.Join("testdata", c.dir)}) // as before
			golden := filepath.Join("testdata", c.dir+".md")
			if *update {
				require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), out.String())
		})
	}
}

func TestMistakes(t *testing.T) {
	var out bytes.Buffer
	require.ErrorContains(t, run(&out, false, nil), "one folder")
	require.ErrorContains(t, run(&out, false, []string{t.TempDir()}), "no results")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte("{"), 0o600))
	require.ErrorContains(t, run(&out, false, []string{dir}), "a.json")
	require.Empty(t, out.String())
}

// TestColumnsAreComplete: a feature that the suite tests has a column.
func TestColumnsAreComplete(t *testing.T) {
	seen := map[drivertest.Feature]bool{}
	for _, r := range columns() {
		require.False(t, seen[r.feature])
		seen[r.feature] = true
	}
	for _, f := range drivertest.Features() {
		require.True(t, seen[f], "no column for %s", f)
	}
	require.Len(t, seen, len(drivertest.Features()))
}

package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplaceFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	require.NoError(t, replaceFile(path, []byte("first"), 0o644))
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, replaceFile(path, []byte("second"), 0o644))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "second", string(text))
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.EqualValues(t, 0o640, info.Mode().Perm(), "an old file keeps its mode")

		link := filepath.Join(dir, "link")
		require.NoError(t, os.Symlink(path, link))
		require.NoError(t, replaceFile(link, []byte("third"), 0o644))
		text, err = os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "third", string(text), "a link stays one")
	}
	require.NoError(t, replaceFile(filepath.Join(dir, "missing", "page.html"), nil, 0o644))
	require.FileExists(t, filepath.Join(dir, "missing", "page.html"))
	require.Error(t, replaceFile(dir, nil, 0o644))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range left {
		require.NotEqual(t, '.', rune(e.Name()[0]), "nothing is left beside it: %s", e.Name())
	}
}

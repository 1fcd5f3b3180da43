package inputfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	sparse := write("sparse", "")
	require.NoError(t, os.Truncate(sparse, 20<<30))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("/dev/zero", link))
	for _, c := range []struct {
		name, path string
		want       string
		err        string
	}{
		{"empty", write("empty", ""), "", ""},
		{"full", write("full", "12345678"), "12345678", ""},
		{"too long", write("long", "123456789"), "", "has more than 8 bytes"},
		{"20 GB", sparse, "", "has more than 8 bytes"},
		{"a folder", dir, "", "is a folder"},
		{"no file", filepath.Join(dir, "none"), "", "no such file or directory"},
		{"a device", "/dev/zero", "", "is a device or socket, not a file"},
		{"a device by a link", link, "", "is a device or socket, not a file"},
		{"a file of the system without a size", "/proc/self/status", "", "has more than 8 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Read(c.path, 8)
			if c.err != "" {
				require.EqualError(t, err, c.path+": "+c.err)
				var known *Error
				require.ErrorAs(t, err, &known)
				assert.NotEmpty(t, known.Hint)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, string(got))
		})
	}
	_, err := Read(filepath.Join(dir, "none"), 8)
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	path := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		return paths
	}
	_, err := Folder(dir, 3)
	require.EqualError(t, err, dir+": has no files")
	for _, name := range []string{"b", "a", ".hidden", "c"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub", "file"), 0o750))
	require.NoError(t, os.Symlink(filepath.Join(dir, "sub"), filepath.Join(dir, "link")))
	files := musttest.Get(Folder(dir, 3))(t)
	require.Equal(t, path("a", "b", "c"), files)
	require.NoError(t, os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "aa")))
	files = musttest.Get(Folder(dir, 4))(t)
	require.Equal(t, path("a", "aa", "b", "c"), files)
	_, err = Folder(dir, 3)
	require.EqualError(t, err, dir+": has more than 3 files")
	_, err = Folder(filepath.Join(dir, "none"), 3)
	require.ErrorIs(t, err, fs.ErrNotExist)
	var known *Error
	require.ErrorAs(t, err, &known)
	require.True(t, IsFolder(filepath.Join(dir, "link")))
	require.False(t, IsFolder(filepath.Join(dir, "a")))
	require.False(t, IsFolder(""))
}

func TestFirstLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, c := range []struct{ content, want, err string }{
		{"", "", ""},
		{"secret", "secret", ""},
		{"secret\r\nmore\n", "secret", ""},
		{"\nsecret", "", ""},
		{strings.Repeat("x", 1000) + "\n" + strings.Repeat("y", 1<<20), strings.Repeat("x", 1000), ""},
		{strings.Repeat("x", 1001), "", "the first line has more than 1000 bytes"},
		{strings.Repeat("\x00", 1<<20), "", "the first line has more than 1000 bytes"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
		got, err := FirstLine(path, 1000)
		if c.err != "" {
			require.EqualError(t, err, path+": "+c.err)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
	}
	_, err := FirstLine("/dev/zero", 1000)
	require.EqualError(t, err, "/dev/zero: is a device or socket, not a file")
}

// TestPipe: a shell passes <(command) as a pipe. A password need not wait for its end.
func TestPipe(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	wrote := make(chan *os.File, 1)
	go func() {
		f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if assert.NoError(t, err) {
			_, err = f.WriteString("secret\n")
			assert.NoError(t, err)
		}
		wrote <- f
	}()
	got := musttest.Get(FirstLine(fifo, 1000))(t)
	assert.Equal(t, "secret", got)
	require.NoError(t, (<-wrote).Close())

	go func() {
		assert.NoError(t, os.WriteFile(fifo, []byte("certificate"), 0))
	}()
	content := musttest.Get(Read(fifo, 100))(t)
	assert.Equal(t, "certificate", string(content))

	go func() {
		_ = os.WriteFile(fifo, make([]byte, 1<<20), 0) // it is cut off
	}()
	_, err := Read(fifo, 100)
	require.EqualError(t, err, fifo+": has more than 100 bytes")
}

// TestReplace: a link stays, and its target is replaced, not written over.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	file, link, loose := filepath.Join(dir, strings.Repeat("x", 255)), filepath.Join(dir, "link"), filepath.Join(dir, "loose")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o640))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, os.Symlink(filepath.Join(dir, "new"), loose))
	old := musttest.Get(os.Open(file))(t)
	defer old.Close()
	for _, path := range []string{link, loose} {
		require.NoError(t, Replace(path, []byte("text"), 0o600))
		text := musttest.Get(os.ReadFile(path))(t)
		require.Equal(t, "text", string(text))
		info := musttest.Get(os.Lstat(path))(t)
		require.Equal(t, fs.ModeSymlink, info.Mode().Type())
	}
	text := make([]byte, 4)
	n, _ := old.Read(text)
	require.Equal(t, "old", string(text[:n]))
	info := musttest.Get(os.Stat(file))(t)
	require.Equal(t, fs.FileMode(0o640), info.Mode())
	missing := filepath.Join(dir, "none", "file")
	var failed *fs.PathError
	require.ErrorAs(t, Replace(missing, nil, 0o600), &failed)
	require.Equal(t, missing, failed.Path)
	require.True(t, onlyOld(&fs.PathError{Op: "open", Path: file, Err: syscall.EROFS}), "a file mounted in a container that is read-only")

	// A link of the system is written through: the open file stays the one of that name.
	stdout := musttest.Get(os.Create(filepath.Join(dir, "stdout")))(t)
	defer stdout.Close()
	require.NoError(t, Replace(fmt.Sprint("/dev/fd/", stdout.Fd()), []byte("text"), 0o600))
	open := musttest.Get(stdout.Stat())(t)
	named := musttest.Get(os.Stat(stdout.Name()))(t)
	require.True(t, os.SameFile(open, named))
	require.EqualValues(t, len("text"), named.Size())
}

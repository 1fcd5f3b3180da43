//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// fifo makes a named pipe and opens it at the end of the test, so that no reader waits forever.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	t.Cleanup(func() {
		f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
		if assert.NoError(t, err) {
			_ = f.Close()
		}
	})
	return path
}

// TestInterruptedWhileReading: a signal ends the wait for any input at once.
func TestInterruptedWhileReading(t *testing.T) {
	for _, args := range []string{
		"alpha client --user u --password-file PIPE",
		"alpha client --url alphas://h --tls-ca PIPE",
		"alpha client --url alphas://h --tls-cert PIPE --tls-key PIPE",
		"mem client --body-file PIPE",
		"verify PIPE",
		"broker --user u --password-file PIPE",
	} {
		for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
			t.Run(args+" "+signal.String(), func(t *testing.T) {
				signals := make(chan os.Signal, 1)
				signals <- signal
				start := time.Now()
				got := callWith(signals, nil, strings.Fields(strings.ReplaceAll(args, "PIPE", fifo(t)))...)
				assert.Equal(t, result.StatusInterrupted, got.status)
				assert.Equal(t, "interrupted: nothing was connected or sent\n", got.stderr)
				assert.Empty(t, got.stdout)
				assert.Less(t, time.Since(start), time.Minute)
			})
		}
	}
}

// TestInputs: an input that is not a file, or too large, is refused before it is read into memory.
func TestInputs(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(large, []byte("x"), 0o600))
	require.NoError(t, os.Truncate(large, 20<<30)) // takes no room on the disk
	for _, c := range []struct{ args, stderr string }{
		{"alpha client --user u --password-file /dev/zero", "error: --password-file: /dev/zero: is a device or socket, not a file\nhint: name a file, or a pipe"},
		{"alpha client --user u --password-file " + large, "error: --password-file: " + large + ": the first line has more than 4096 bytes\nhint: is it the right file?\n"},
		{"alpha client --url alphas://h --tls-ca " + filepath.Join(dir, "none"), "error: --tls-ca: " + filepath.Join(dir, "none") + ": no such file or directory\nhint: check the path"},
		{"alpha client --url alphas://h --tls-cert " + large + " --tls-key /dev/zero", "error: --tls-cert: " + large + ": has more than 16777216 bytes\nhint: is it the right file?\nerror: --tls-key: /dev/zero: is a device"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := call(nil, strings.Fields(c.args)...)
			assert.Equal(t, result.StatusUsage, got.status)
			assert.True(t, strings.HasPrefix(got.stderr, c.stderr), got.stderr)
			assert.Empty(t, got.stdout)
		})
	}
}

// TestPipesAsInputs: a password, certificates and a body may come from a pipe, as with a shell's <(command).
func TestPipesAsInputs(t *testing.T) {
	write := func(content string) string {
		path := fifo(t)
		go func() { _ = os.WriteFile(path, []byte(content), 0) }()
		return path
	}
	got := call(nil, "mem", "client", "--message-count", "3", "-o", "auth=joe:x y", "--user", "joe", "--password-file", write("x y\n"), "--body-file", write("body"))
	assert.Equal(t, result.StatusOK, got.status, got.stderr)
	got = call(nil, "alpha", "client", "--dry-run", "--url", "alphas://h", "--tls-ca", write("no certificate"))
	assert.Equal(t, result.StatusUsage, got.status)
	assert.Contains(t, got.stderr, "holds no certificate in PEM form")
}

// TestSameFile: two outputs to one file, or an output over an input, are refused, under whatever paths.
func TestSameFile(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("body", []byte("body"), 0o600))
	require.NoError(t, os.WriteFile("there", []byte("old"), 0o600))
	require.NoError(t, os.Link("there", "hard"))
	require.NoError(t, os.Symlink("there", "soft"))
	require.NoError(t, os.Mkdir("bodies", 0o700))
	require.NoError(t, os.WriteFile("bodies/one", []byte("body"), 0o600))
	for _, c := range []struct {
		args string
		same string // part of the error; empty for none
	}{
		{"--json a --hdr b --verify-file c", ""},
		{"--json a --hdr ./a", "--json and --hdr name the same file ./a"},
		{"--json there --hdr hard", "--json and --hdr name the same file hard"},
		{"--json soft --hdr there", "--json and --hdr name the same file there"},
		{"--json body --body-file body", "--body-file and --json name the same file body"},
		{"--json bodies/one --body-file bodies", "--body-file and --json name the same file bodies/one"},
		{"--user u --password-file there --json hard", "--password-file and --json name the same file hard"},
		{"--json /dev/null --hdr /dev/null --verify-file /dev/null", ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := call(nil, append([]string{"mem", "client", "--dry-run"}, strings.Fields(c.args)...)...)
			if c.same == "" {
				assert.Equal(t, result.StatusOK, got.status, got.stderr)
				return
			}
			assert.Equal(t, result.StatusUsage, got.status)
			assert.Equal(t, "error: "+c.same+"\nhint: name two files\n", got.stderr)
		})
	}
	content := musttest.Get(os.ReadFile("there"))(t)
	assert.Equal(t, "old", string(content))

	require.Equal(t, result.StatusOK, call(nil, "mem", "client", "--message-count", "1", "--verify-file", "a.pv").status)
	require.NoError(t, os.Link("a.pv", "b.pv"))
	got := call(nil, "verify", "a.pv", "--json", "b.pv")
	assert.Equal(t, result.StatusUsage, got.status)
	assert.Equal(t, "error: --json a.pv is read\nhint: name another file\n", got.stderr)
}

package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/perfmq/perfmq/internal/run"
)

// fullDisk is a standard output that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: os.ErrInvalid}
}

// TestFullStandardOutput: output that was not written is a failure of its own, and no success.
func TestFullStandardOutput(t *testing.T) {
	t.Parallel()
	a, b := makeRepeats(t, "a", "1ms", 1), makeRepeats(t, "b", "1ms", 1)
	for _, args := range [][]string{
		{"--help"},
		{"mem", "client", "--help"},
		{"mem", "client", "--help-all"},
		{"version"},
		{"mem", "client", "--dry-run"},
		{"scenario", "schema"},
		{"scenario", "metrics"},
		{"completion", "bash"},
		{"report", "--format", "csv", a},
		{"compare", a, b},
		{"merge", filepath.Join("testdata", "before", "shard1"), filepath.Join("testdata", "before", "shard2")},
	} {
		var stderr output
		status := Main(Env{
			Args: args, Stdout: fullDisk{}, Stderr: &stderr, Factories: testFactories(), Version: run.Version{Number: "v0.0.0"},
		})
		assert.Equal(t, exitFailed, status, args)
		assert.Equal(t, "error: write /dev/stdout: invalid argument\nhint: look at where standard output goes\n", stderr.String(), args)
	}
}

// TestNoPlaceForOutput: a place where nothing can be made is found before anything is done.
func TestNoPlaceForOutput(t *testing.T) {
	t.Parallel()
	a := makeRepeats(t, "a", "1ms", 1)
	file := filepath.Join(t.TempDir(), "file")
	assert.NoError(t, os.WriteFile(file, nil, 0o600))
	in := filepath.Join(file, "x")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"mem", "client", "--result", in}, "--result " + in + ": " + file + " is no folder"},
		{[]string{"mem", "client", "--json", in}, "--json " + in + ": " + file + " is no folder"},
		{[]string{"mem", "client", "--hdr", in}, "--hdr " + in + ": " + file + " is no folder"},
		{[]string{"mem", "client", "--verify-file", in}, "--verify-file " + in + ": " + file + " is no folder"},
		{[]string{"report", "--output", in, a}, "--output " + in + ": " + file + " is no folder"},
		{[]string{"report", "--output", a, a}, "--output " + a + " is a folder\nhint: name a file"},
		{[]string{"merge", "--result", in, filepath.Join(a, "0")}, "--result " + in + ": " + file + " is no folder"},
		{[]string{"merge", "--result", file, filepath.Join(a, "0")}, "--result " + file + " is a file\nhint: name a folder"},
	} {
		r := call(nil, c.args...)
		assert.Equal(t, exitUsage, r.status, c.args)
		assert.Equal(t, "error: "+c.says+"\n", r.stderr)
		assert.Empty(t, r.stdout)
	}
}

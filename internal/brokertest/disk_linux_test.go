package brokertest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSmallDisk: a process writes to a disk that nothing else sees, until it is full, and again when it is not.
func TestSmallDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "disk")
	d, err := newSmallDisk(dir, 1<<20)
	if os.Geteuid() != 0 {
		require.ErrorContains(t, err, "only root may")
		return
	}
	require.NoError(t, err)
	defer d.close()
	run := func(command string) string {
		p, err := startProcess(t.Context(), processSpec{
			name: "shell", path: "/bin/sh", args: []string{"-c", command + "; echo ready; sleep 60"}, dir: t.TempDir(),
			logFile: filepath.Join(t.TempDir(), "log"), ready: "ready", timeout: time.Minute, disk: d,
		})
		require.NoError(t, err)
		defer p.kill()
		return p.tail()
	}
	write := "head -c 100000 /dev/zero > " + filepath.Join(dir, "data") + " && echo written"
	require.Contains(t, run(write), "written")
	require.NoError(t, d.fill())
	require.NotContains(t, run("rm "+filepath.Join(dir, "data")+"; head -c 200000 /dev/zero > "+
		filepath.Join(dir, "more")+" && echo written"), "written")
	require.NoError(t, d.free())
	require.Contains(t, run(write), "written")

	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
	mounts, err := os.ReadFile("/proc/thread-self/mounts")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), dir)
}

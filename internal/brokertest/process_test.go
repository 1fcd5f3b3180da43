//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// shell is a broker made of a few lines of shell.
func shell(t testing.TB, script string) processSpec {
	return processSpec{
		name: "toy", path: "/bin/sh", args: []string{"-c", script}, logFile: filepath.Join(t.TempDir(), "log"),
		ready: "I am ready", timeout: time.Minute, hint: "ask the shell",
	}
}

// gone waits until no process has the id.
func gone(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := poll(ctx, 10*time.Millisecond, func() (bool, error) {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			return true, nil // dead; whoever inherited it has not reaped it yet
		}
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH), nil
	})
	require.NoError(t, err, "process %d is still there", pid)
}

func TestProcessIsReadyThenKilledWithItsChildren(t *testing.T) {
	p := musttest.Get(startProcess(t.Context(), shell(t, `sleep 100 & echo child $!; echo I am ready; wait`)))(t)
	require.True(t, p.alive())
	var child int
	_, err := fmt.Sscanf(p.tail(), "child %d", &child)
	require.NoError(t, err)
	p.kill()
	require.False(t, p.alive())
	gone(t, child)
	require.Error(t, p.signal(syscall.SIGCONT))
}

func TestProcessThatEndsTooEarly(t *testing.T) {
	_, err := startProcess(t.Context(), shell(t, `echo no disk; exit 3`))
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "no disk")
	require.ErrorContains(t, err, "ask the shell")
}

// TestProcessWithoutItsPort: a broker without its port has failed, although it says later that it is ready.
func TestProcessWithoutItsPort(t *testing.T) {
	_, err := startProcess(t.Context(), shell(t, `echo bind failed: Address already in use; echo I am ready; sleep 100`))
	require.ErrorContains(t, err, "toy could not listen: Address already in use")
	p := musttest.Get(startProcess(t.Context(), shell(t, `echo I am ready; echo a bridge: Address already in use; sleep 100`)))(t)
	p.kill()
}

func TestProcessThatNeverGetsReady(t *testing.T) {
	spec := shell(t, `sleep 100`)
	spec.timeout = time.Millisecond
	_, err := startProcess(t.Context(), spec)
	require.ErrorContains(t, err, "not ready after 1ms")

	ctx, cancel := context.WithCancel(t.Context())
	spec = shell(t, `echo pid $$; sleep 100`)
	var pid int
	go func() {
		defer cancel()
		_ = poll(t.Context(), time.Millisecond, func() (bool, error) {
			text, _ := os.ReadFile(spec.logFile)
			_, err := fmt.Sscanf(string(text), "pid %d\n", &pid)
			return err == nil, nil
		})
	}()
	_, err = startProcess(ctx, spec)
	require.ErrorIs(t, err, context.Canceled)
	gone(t, pid)
}

func TestProcessStop(t *testing.T) {
	p, err := startProcess(t.Context(), shell(t, `trap 'echo bye; exit 0' TERM; echo I am ready; while :; do sleep 0.05; done`))
	require.NoError(t, err)
	require.NoError(t, p.pause())
	require.NoError(t, p.stop(time.Minute), "a paused process is woken to stop")
	assert.Contains(t, p.tail(), "bye")

	p = musttest.Get(startProcess(t.Context(), shell(t, `trap '' TERM; echo I am ready; while :; do sleep 0.05; done`)))(t)
	require.ErrorContains(t, p.stop(100*time.Millisecond), "killed")
	require.False(t, p.alive())
}

const orphanEnv = "PERFMQ_TEST_ORPHAN"

// TestProcessDiesWithUs starts this test binary again, which starts a process
// and is then killed, as by a test's timeout.
func TestProcessDiesWithUs(t *testing.T) {
	if os.Getenv(orphanEnv) != "" {
		p := musttest.Get(startProcess(t.Context(), shell(t, `echo I am ready; exec sleep 100`)))(t)
		fmt.Printf("broker %d\n", p.pid())
		<-p.done // until we are killed
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return // only Linux ties the life of a child to ours
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestProcessDiesWithUs$")
	cmd.Env = append(os.Environ(), orphanEnv+"=1")
	out := musttest.Get(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	var pid int
	_, err := fmt.Fscanf(out, "broker %d\n", &pid)
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	gone(t, pid)
}

func TestOnceProducesOnce(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(CacheEnv, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thing.tmp"), []byte("half"), 0o600)) // of one that was killed
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			path, err := once(t.Context(), "thing", func(tmp string) error {
				made.Add(1)
				return os.WriteFile(tmp, []byte("whole"), 0o600)
			})
			assert.NoError(t, err)
			text, err := os.ReadFile(path)
			assert.NoError(t, err)
			assert.Equal(t, "whole", string(text))
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1, made.Load())

	failed := errors.New("no network")
	_, err := once(t.Context(), "other", func(string) error { return failed })
	require.ErrorIs(t, err, failed)
}

func TestOrphanedFoldersAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	kept, release, err := newBrokerDir("toy")
	require.NoError(t, err)
	defer release()
	orphan, releaseOrphan, err := newBrokerDir("toy")
	require.NoError(t, err)
	releaseOrphan()
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{kept, orphan} {
		require.NoError(t, os.Chtimes(filepath.Join(dir, "owner.lock"), old, old))
	}
	removeOrphans()
	assert.DirExists(t, kept)
	assert.NoDirExists(t, orphan)
}

// TestDefaultPortsAreClaimed: of brokers that are started at once, one gets a wanted port, and the next one when it has
// ended.
func TestDefaultPortsAreClaimed(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	var before daemon
	free := musttest.Get(before.pickPorts(0))(t)
	before.unclaim()
	brokers := make([]daemon, 8)
	got := make([]int, len(brokers))
	var all sync.WaitGroup
	for i := range brokers {
		all.Go(func() {
			ports, err := brokers[i].pickPorts(0, free[0])
			require.NoError(t, err) //nolint:testifylint // it is a failure in any case
			got[i] = ports[1]
		})
	}
	all.Wait()
	first := -1
	for i, port := range got {
		if port == free[0] {
			require.Negative(t, first, "two brokers have the port")
			first = i
		}
	}
	require.GreaterOrEqual(t, first, 0, "nobody has the port")
	for range 2 { // it keeps it when it picks again
		ports := musttest.Get(brokers[first].pickPorts(free[0]))(t)
		require.Equal(t, free, ports)
	}
	brokers[first].unclaim()
	other := (first + 1) % len(brokers)
	ports := musttest.Get(brokers[other].pickPorts(free[0]))(t)
	require.Equal(t, free, ports)
	brokers[other].unclaim()
}

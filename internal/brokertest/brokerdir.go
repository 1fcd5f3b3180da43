//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	dirPrefix    = "perfmq-broker-" // begins the names of brokers' folders
	ownerLock    = "owner.lock"     // in a folder: locked while the process that started the broker lives
	detachedMark = "detached.pid"   // in a folder: the pid of that process, see [MarkDetached]
)

// newBrokerDir creates a folder for one broker and marks it as in use, by a file lock that ends with this process. It
// removes the folders of owners that have ended.
func newBrokerDir(kind string) (dir string, release func(), err error) {
	removeOrphans()
	dir, err = os.MkdirTemp("", dirPrefix+kind+"-")
	if err != nil {
		return "", nil, fmt.Errorf("create a folder for %s: %w (set TMPDIR to one that can be written)", kind, err)
	}
	lock, err := os.Create(filepath.Join(dir, ownerLock))
	if err != nil {
		return "", nil, fmt.Errorf("mark the folder for %s: %w", kind, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return "", nil, fmt.Errorf("mark the folder for %s: %w", kind, err)
	}
	return dir, func() { _ = lock.Close() }, nil
}

// removeOrphans removes the folders of processes that were killed before they could. A folder that it cannot remove
// is left for the next time.
func removeOrphans() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		lock, err := os.Open(filepath.Join(dir, ownerLock))
		if err != nil {
			continue
		}
		info, err := lock.Stat()
		settled := err == nil && time.Since(info.ModTime()) > time.Minute // not one between creation and lock
		if settled && syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}

// MarkDetached makes a broker one that [StopDetached] finds. dir is the broker's folder, pid the process that started
// it.
func MarkDetached(dir string, pid int) error {
	err := os.WriteFile(filepath.Join(dir, detachedMark), []byte(strconv.Itoa(pid)), 0o600)
	if err != nil {
		return fmt.Errorf("mark the broker of process %d as detached: %w", pid, err)
	}
	return nil
}

// StopDetached sends SIGTERM to the processes that own marked brokers, and waits until they have ended. Each of the
// pids must own a broker; without pids, all owners of folders in the present temporary folder are stopped. It returns
// the pids that ended.
func StopDetached(ctx context.Context, pids ...int) (stopped []int, err error) {
	marks, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*", detachedMark))
	if err != nil {
		return nil, fmt.Errorf("look for detached brokers: %w", err)
	}
	var errs []error
	tried := map[int]bool{}
	for _, mark := range marks {
		text, err := os.ReadFile(mark)
		if err != nil {
			continue // another user's, or removed meanwhile
		}
		pid, err := strconv.Atoi(string(text))
		lock := filepath.Join(filepath.Dir(mark), ownerLock)
		// The lock proves that the pid is still the owner's.
		if err != nil || !locked(lock) || len(pids) > 0 && !slices.Contains(pids, pid) {
			continue
		}
		tried[pid] = true
		if err := endOwner(ctx, pid, lock); err != nil {
			errs = append(errs, fmt.Errorf("stop the broker of process %d: %w", pid, err))
			continue
		}
		stopped = append(stopped, pid)
	}
	for _, pid := range pids {
		if !tried[pid] {
			errs = append(errs, fmt.Errorf("process %d owns no detached broker", pid))
		}
	}
	return stopped, errors.Join(errs...)
}

func endOwner(ctx context.Context, pid int, lock string) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	return poll(ctx, 50*time.Millisecond, func() (bool, error) {
		if _, err := os.Stat(filepath.Dir(lock)); errors.Is(err, os.ErrNotExist) {
			return true, nil
		}
		_, err := os.Stat(lock) // is the first to go when the owner removes its folder
		return err == nil && !locked(lock), nil
	})
}

// locked reports whether a process holds a file lock.
func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

//go:build unix

package brokertest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// DirPrefix and the kind of the broker begin the name of its folder, in the temporary folder.
	DirPrefix = "perfmq-broker-"
	ownerLock = "owner.lock" // in a folder: locked while the process that started the broker lives
)

// newBrokerDir creates a folder for one broker and marks it as in use, by a file lock that ends with this process. It
// removes the folders of owners that have ended.
func newBrokerDir(kind string) (dir string, release func(), err error) {
	removeOrphans()
	dir, err = os.MkdirTemp("", DirPrefix+kind+"-")
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
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), DirPrefix+"*"))
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

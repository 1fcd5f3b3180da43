package brokertest

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// filler is the file that takes the space of a full disk.
const filler = "perfmq-filler"

// smallDisk is a file system of a few megabytes in memory. It is mounted in a mount namespace of its own, which the
// broker's process shares: nothing else sees it, and the kernel removes it when the broker and this process have ended,
// however they ended.
type smallDisk struct {
	space *os.File // names the mount namespace, and keeps it
	root  *os.Root // the folder at which it is mounted, as the broker sees it
}

// newSmallDisk mounts a file system of that size at a folder, which it makes. Only root may.
func newSmallDisk(dir string, size int64) (*smallDisk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder for a small disk: %w", err)
	}
	d := new(smallDisk)
	var err error
	onOwnThread(func() { err = d.mount(dir, size) })
	if err != nil {
		d.close()
		return nil, fmt.Errorf("mount a small disk at %s (which only root may): %w", dir, err)
	}
	return d, nil
}

func (d *smallDisk) mount(dir string, size int64) (err error) {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("perfmq", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		return err
	}
	if d.space, err = os.Open("/proc/thread-self/ns/mnt"); err != nil {
		return err
	}
	d.root, err = os.OpenRoot(dir)
	return err
}

// enter moves the calling thread, which must be locked and end, to where the disk is mounted.
func (d *smallDisk) enter() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // which setns demands
		return err
	}
	return unix.Setns(int(d.space.Fd()), unix.CLONE_NEWNS)
}

// fill takes all space that is left.
func (d *smallDisk) fill() error {
	f, err := d.root.Create(filler)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		if _, err = f.Write(block); errors.Is(err, unix.ENOSPC) {
			block, err = block[:len(block)/2], nil
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, f.Close())
}

// free gives it back.
func (d *smallDisk) free() error { return d.root.Remove(filler) }

// close removes the disk, once nothing runs that uses it.
func (d *smallDisk) close() {
	if d.root != nil {
		_ = d.root.Close()
	}
	if d.space != nil {
		_ = d.space.Close()
	}
}

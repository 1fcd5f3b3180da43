//go:build unix && !linux

package brokertest

import "errors"

// smallDisk is a file system of its own, see disk_linux.go.
type smallDisk struct{}

func newSmallDisk(string, int64) (*smallDisk, error) {
	return nil, errors.New("a small disk can be made on Linux only")
}

func (*smallDisk) enter() error { return nil }
func (*smallDisk) fill() error  { return nil }
func (*smallDisk) free() error  { return nil }
func (*smallDisk) close()       {}

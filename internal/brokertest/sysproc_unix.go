//go:build unix && !linux

package brokertest

import "syscall"

// sysProcAttr puts a process in a group of its own. Only Linux can also tie its
// life to ours.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

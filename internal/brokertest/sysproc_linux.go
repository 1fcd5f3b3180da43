package brokertest

import "syscall"

// sysProcAttr puts a process in a group of its own (a Ctrl-C at the terminal is
// then ours to handle) that the kernel kills when we die.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

package brokertest

import (
	"syscall"
	"testing"
)

// sysProcAttr puts a process in a group of its own (a Ctrl-C at the terminal is then ours to handle) that the kernel
// kills when we die. For programs that measure it is in a session of its own as well: Linux shares the processors out
// by session (sched_autogroup), as it does by service, and in our session the broker's many threads would take them
// from perfmq. In tests, each of many sessions would get no more than its share of a busy machine.
func sysProcAttr() *syscall.SysProcAttr {
	if testing.Testing() {
		return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	}
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

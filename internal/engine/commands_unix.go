//go:build unix

package engine

import (
	"os/exec"
	"syscall"
)

// endWithChildren gives a command a process group of its own, which ends as a whole when the context of the command
// does. A Ctrl-C at the terminal, which goes to the group of the tester, is then for the tester to pass on.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

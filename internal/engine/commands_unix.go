//go:build unix

package engine

import (
	"os/exec"
	"syscall"
)

// endWithChildren gives a command a process group of its own, which is ended as a whole with the command's context. A
// Ctrl-C at the terminal reaches only perfmq's group; perfmq decides whether to end the command.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

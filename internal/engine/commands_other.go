//go:build !unix

package engine

import "os/exec"

// endWithChildren does nothing: there are no process groups.
func endWithChildren(*exec.Cmd) {}

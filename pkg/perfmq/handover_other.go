//go:build !unix

package perfmq

import (
	"errors"
	"os"
	"os/exec"
)

// handOver runs another program of the release with the same command line, and returns its status. Ctrl-C reaches both;
// this one waits.
func handOver(program string) (status int, err error) {
	path, err := beside(program)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(path, os.Args[1:]...) //nolint:gosec,noctx // it stands beside this program, and ends by itself
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

//go:build unix

package perfmq

import (
	"os"
	"syscall"
)

// handOver replaces this process by another program of the release, with the same command line. It returns only if
// that fails.
func handOver(program string) (status int, err error) {
	path, err := beside(program)
	if err != nil {
		return 0, err
	}
	return 0, syscall.Exec(path, os.Args, os.Environ()) //nolint:gosec // it stands beside this program
}

//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

const detachedLife = "24h" // a forgotten broker ends

// detach starts this program again in a session of its own, with the same arguments, and returns when the broker is
// ready.
func detach(ctx context.Context, args []string, stdout io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	stderr, err := os.CreateTemp("", "perfmq-broker-detach-")
	if err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	defer func() { _ = stderr.Close() }()
	_ = os.Remove(stderr.Name()) // it goes with the last process that has it open

	cmd := exec.Command(self, attached(args)...) //nolint:noctx // it outlives the context
	cmd.Stderr = stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	giveUp := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer giveUp()
	var lines []string
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		lines = append(lines, scanner.Text())
		if scanner.Text() == "READY=1" {
			return announce(stdout, args[0], lines, cmd.Process)
		}
	}
	_ = cmd.Wait()
	_, _ = stderr.Seek(0, io.SeekStart)
	said, _ := io.ReadAll(io.LimitReader(stderr, 64<<10))
	return fmt.Errorf("the broker did not start: %s", strings.TrimPrefix(strings.TrimSpace(string(said)), "error: "))
}

// attached returns the arguments without -detach.
func attached(args []string) []string {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return name == "detach"
	})
	// Behind the kind and before the other flags, which win.
	return slices.Insert(args, 1, "-outlive-parent", "-for", detachedLife)
}

// announce prints the lines of a broker and how to reach it.
func announce(stdout io.Writer, kind string, lines []string, harness *os.Process) error {
	_, err := fmt.Fprintf(stdout, "%s\nHARNESS_PID=%d\n"+
		"# to end or to crash it: go run ./internal/brokertest/cmd/broker %s -stop %[2]d, or -restart, or -kill\n",
		strings.Join(lines, "\n"), harness.Pid, kind)
	return errors.Join(err, harness.Release())
}

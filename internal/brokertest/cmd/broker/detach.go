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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
)

const (
	detachedLife = "24h"       // a forgotten broker ends
	stopLimit    = time.Minute // more than a broker may take to stop
)

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
			return announce(stdout, lines, cmd.Process)
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

// announce marks the broker's folder for -stop and prints the lines.
func announce(stdout io.Writer, lines []string, harness *os.Process) error {
	var dir string
	for _, line := range lines {
		if value, ok := strings.CutPrefix(line, "BROKER_DIR="); ok {
			dir = strings.Trim(value, "'")
		}
	}
	if err := brokertest.MarkDetached(dir, harness.Pid); err != nil {
		return errors.Join(err, harness.Signal(syscall.SIGTERM))
	}
	_, err := fmt.Fprintf(stdout, "%s\nHARNESS_PID=%d\n# to stop it: go run ./internal/brokertest/cmd/broker -stop "+
		"%[2]d\n",
		strings.Join(lines, "\n"), harness.Pid)
	return errors.Join(err, harness.Release())
}

// stopDetached stops the brokers that -detach started: of the processes named, or all of this user.
func stopDetached(ctx context.Context, args []string, stdout io.Writer) error {
	pids := make([]int, len(args))
	for i, arg := range args {
		var err error
		if pids[i], err = strconv.Atoi(arg); err != nil {
			return fmt.Errorf("-stop %s: use the HARNESS_PID that -detach printed, or none for all", arg)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	stopped, err := brokertest.StopDetached(ctx, pids...)
	for _, pid := range stopped {
		_, _ = fmt.Fprintf(stdout, "stopped the broker of process %d\n", pid)
	}
	if len(pids) == 0 && len(stopped) == 0 && err == nil {
		_, _ = fmt.Fprintln(stdout, "no detached broker is running")
	}
	return err
}

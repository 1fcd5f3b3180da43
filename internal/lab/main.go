//go:build unix

// Command lab runs perfmq on real brokers, and writes the records of docs/lab.
//
//	go run ./internal/lab failures -out docs/lab/failures.md
//	go run ./internal/lab failures -only '^artemis/kill$'
//
// Everything listens on loopback, and is stopped in any case.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// command is a command of the lab: the trials of a record, or another way to make one.
type command struct {
	name, help string
	columns    []string // of the record, before the verdict
	matrix     bool     // the record begins with a table of failures by deployments
	flags      func(*flag.FlagSet)
	trials     func(*session) ([]trial, error)
	run        func(context.Context, *session) error // instead of trials
}

func commands() []command {
	columns := []string{"failure", "deployment", "protocol", "promised", "observed", "our count", "broker's count"}
	return []command{
		{
			name: "failures", help: "brokers fail under load; judge perfmq's report", columns: columns, matrix: true,
			trials: func(*session) ([]trial, error) { return failureTrials(false), nil },
		},
		{
			name: "starts", help: "brokers start with up to 2,000,000 stored messages", columns: columns, matrix: true,
			trials: func(*session) ([]trial, error) { return failureTrials(true), nil },
		},
		benchCommand(), connectionsCommand(), acceptanceCommand(), featuresCommand(), soakCommand(),
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	var usage strings.Builder
	for _, c := range commands() {
		if len(args) == 0 || args[0] != c.name {
			fmt.Fprintf(&usage, "\n  %-11s %s", c.name, c.help)
			continue
		}
		s, err := open(&c, args[1:])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		if c.run != nil {
			return c.run(ctx, s)
		}
		return s.record(ctx, &c)
	}
	return fmt.Errorf("usage: lab COMMAND [FLAG]...%s", usage.String())
}

// session is one call of a command.
type session struct {
	perfmq, dir, out string
	only             *regexp.Regexp // matches the names of wanted trials
	atOnce           int            // trials at a time
	// allowed is the longest time from a failure to its notice by perfmq: a busy machine may give it no processor for
	// seconds.
	allowed time.Duration
	close   func() error
}

// open reads the flags of a command. The session must be closed.
func open(c *command, args []string) (s *session, err error) {
	s = &session{allowed: onTime, only: new(regexp.Regexp), atOnce: 1, close: func() error { return nil }}
	fs := flag.NewFlagSet("lab "+c.name, flag.ContinueOnError)
	fs.StringVar(&s.perfmq, "perfmq", "bin/perfmq", "our binary")
	fs.StringVar(&s.dir, "results", "", "keep the results in this folder; trials with results in it are not repeated")
	fs.StringVar(&s.out, "out", "", "write the record to this file, instead of the standard output")
	fs.TextVar(s.only, "only", regexp.MustCompile(""), "names to run, as a regular expression, such as ^artemis/kill$")
	if c.flags != nil {
		c.flags(fs)
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "perfmq-lab-"); err != nil {
			return nil, err
		}
		s.close = func() error { return os.RemoveAll(s.dir) }
	}
	s.dir, err = filepath.Abs(s.dir) // a Prometheus has another working directory
	return s, err
}

// command returns perfmq with arguments, ready to run. At the end of the context it gets SIGTERM, and is killed five
// seconds later.
func (s *session) command(ctx context.Context, args ...string) *exec.Cmd {
	program := s.perfmq
	if args[0] == "mem" {
		program += "-mem" // perfmq has no such protocol
	}
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // ours
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func write(file, text string) error {
	if file == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // a page of the documentation
}

// wait returns after the time, or at the end of the context.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

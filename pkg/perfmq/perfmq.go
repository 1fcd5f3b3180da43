// Package perfmq makes the program perfmq, with protocols of one's own beside those that it has:
//
//	package main
//
//	import (
//		"os"
//
//		"example.com/mine/mqtt"
//		"github.com/perfmq/perfmq/pkg/perfmq"
//	)
//
//	func main() { os.Exit(perfmq.Main(mqtt.Factory())) }
//
// Such a program has the commands, files and outputs of perfmq, and `perfmq mqtt client` and the others. A driver needs
// package driver, the contract; package transport has URLs, TLS, shared connections and gathered writing; package
// library the parts of drivers on client libraries; package drivertest the tests. docs/own-protocol.md shows the way,
// examples/driver-mqtt is a whole one.
package perfmq

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"

	"github.com/perfmq/perfmq/internal/cli"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/transport"
	"github.com/perfmq/perfmq/scenarios"
)

// Main runs the command line of this process, with the drivers given, and returns the exit status for [os.Exit]. It is
// called once.
//
// Each driver is a protocol, with its [driver.Factory.Name] as the command. One with the name of a protocol of perfmq,
// and another [driver.Factory.Client], is a further client of it: `--client CLIENT`, or `--client library` where its
// schemes fit the URL best. A driver that cannot be used, as by the name of a command, is refused: the status is
// [result.StatusFailed].
//
// Main takes over the signals of the process: interrupt, SIGTERM and SIGHUP end a run in order; after SIGQUIT it
// writes the stacks of all goroutines to standard error, and returns 128 plus its number.
func Main(extra ...driver.Factory) (status int) {
	env, err := environment(extra)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return result.StatusFailed
	}
	signals := make(chan os.Signal, 3) // a run tells up to three apart
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Ignore(syscall.SIGPIPE) // a closed standard output shall end the run, not the process
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT) // Go itself would exit with 2, which means a mistake in the command line
	env.HandOver = handOver
	env.Args, env.Environ, env.Signals = os.Args[1:], os.Environ(), signals
	env.Stdout, env.Stderr = os.Stdout, os.Stderr
	ended := make(chan int, 1)
	go func() { ended <- cli.Main(env) }()
	select {
	case status = <-ended:
	case <-quit:
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		status = 128 + int(syscall.SIGQUIT)
	}
	return status
}

// environment returns the program with the drivers given, before the process is known.
func environment(extra []driver.Factory) (cli.Env, error) {
	env := cli.Env{
		Factories: drivers.All(), Scenarios: scenarios.FS(), Version: run.NewVersion(transport.Version),
	}
	if len(extra) == 0 {
		return env, nil
	}
	var commands []string
	for _, cmd := range cli.Commands(env).Commands() {
		commands = append(commands, cmd.Name())
	}
	var errs []error
	for i := range extra {
		f := &extra[i]
		if err := check(f, env.Factories, commands); err != nil {
			errs = append(errs, fmt.Errorf("driver %d of perfmq.Main, %q: %w", i+1, f.Name, err))
		}
		// It takes the place of its description: the first library of a protocol is its usual one.
		at := slices.IndexFunc(env.Factories, func(b driver.Factory) bool { return stands(&b, f) })
		if at >= 0 {
			env.Factories[at] = *f
		} else {
			env.Factories = append(env.Factories, *f)
		}
		env.Version.Extra = append(env.Version.Extra, strings.TrimSpace(f.Name+" "+f.Client))
	}
	return env, errors.Join(errs...)
}

// check returns why a driver cannot be used beside those before it, and the commands of perfmq.
func check(f *driver.Factory, before []driver.Factory, commands []string) error {
	known := slices.ContainsFunc(before, func(b driver.Factory) bool { return b.Name == f.Name })
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(f.Name):
		return errors.New("a name is small letters, digits and hyphens")
	case f.Title == "" || len(f.Schemes) == 0 || f.DefaultURL == "" || f.Open == nil:
		return errors.New("it needs Title, Schemes, DefaultURL and Open")
	case !f.Capabilities.Queue.Exists && !f.Capabilities.Topic.Exists:
		return errors.New("it has neither queues nor topics, by its Capabilities")
	case !known && slices.Contains(commands, f.Name):
		return errors.New("perfmq has a command of this name")
	case known && slices.ContainsFunc(before, func(b driver.Factory) bool {
		same := b.Name == f.Name && cmp.Or(b.Client, driver.Native) == cmp.Or(f.Client, driver.Native)
		return same && !stands(&b, f)
	}):
		return fmt.Errorf("there is one by the same Client, %q", f.Client)
	}
	return nil
}

// stands reports whether b stands for f, of another program of the release.
func stands(b, f *driver.Factory) bool {
	return b.Open == nil && b.Name == f.Name && b.Client == f.Client
}

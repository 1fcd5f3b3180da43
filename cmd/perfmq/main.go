// Command perfmq puts a measured load on a message broker. See package cli.
package main

import (
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"

	"github.com/perfmq/perfmq/internal/cli"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/transport"
	"github.com/perfmq/perfmq/scenarios"
)

// dumpOnQuit writes the stacks of all goroutines at a SIGQUIT and ends the process with 128 plus the signal's number,
// as a shell does. Go itself would end it with 2, which means a mistake in the command line.
func dumpOnQuit() {
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	<-quit
	_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
	os.Exit(128 + int(syscall.SIGQUIT))
}

func main() {
	signals := make(chan os.Signal, 3) // a run tells up to three apart
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Ignore(syscall.SIGPIPE) // a closed standard output shall end the run, not the process
	go dumpOnQuit()
	os.Exit(cli.Main(cli.Env{
		Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr,
		Signals: signals, Factories: drivers.All(), Scenarios: scenarios.FS(),
		Version: run.NewVersion(transport.Version),
	}))
}

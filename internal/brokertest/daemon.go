//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// daemon is the common part of all brokers: a process that can be started again, with a
// folder of its own. Its methods may be called concurrently.
type daemon struct {
	title string // in messages
	java  string // the program; empty of brokers without one
	dir   string
	owner func() // releases the folder

	mu     sync.Mutex
	proc   *process   // nil before the first start
	helper *process   // a process that the broker needs; it ends with Close; nil if there is none
	claims []*os.File // the lock files of its ports
}

// handle has the methods that all brokers have in common, as far as this package calls them.
type handle interface {
	Alive() bool
	LogTail() string
	Close() error
}

// startForTest starts a broker and ends it with the test. It fails the test if the broker cannot start. A failed test
// logs the end of the broker's log.
func startForTest[B handle, O any](
	tb testing.TB, title string, launch func(context.Context, ...O) (B, error), opts []O,
) B {
	tb.Helper()
	Needs(tb, title)
	b, err := launch(tb.Context(), opts...)
	if err != nil {
		tb.Fatalf("this test needs a broker (%s): %v", title, err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the end of the broker's log:\n%s", b.LogTail())
		}
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// launchTwo starts a broker, and a second one with the same options and another that refers to the first.
func launchTwo[B handle, O any](
	ctx context.Context, launch func(context.Context, ...O) (B, error), opts []O, other func(first B) O,
) (first, second B, err error) {
	var none B
	if first, err = launch(ctx, opts...); err != nil {
		return none, none, fmt.Errorf("start the first broker: %w", err)
	}
	if second, err = launch(ctx, append(slices.Clone(opts), other(first))...); err != nil {
		return none, none, errors.Join(fmt.Errorf("start the second broker: %w", err), first.Close())
	}
	return first, second, nil
}

// open creates the folder of a broker. Brokers that are Java programs need java.
func (d *daemon) open(title, kind string, java bool) (err error) {
	d.title = title
	if java {
		if d.java, err = javaPath(); err != nil {
			return err
		}
	}
	d.dir, d.owner, err = newBrokerDir(kind)
	return err
}

// firstStart configures a broker for free ports and starts it. It takes other ports if another process took one before
// the broker could bind it.
func (d *daemon) firstStart(configure, start func() error) error {
	for try := 1; ; try++ {
		if err := configure(); err != nil {
			return err
		}
		err := start()
		if err == nil || try == 3 || !portTaken.MatchString(err.Error()) {
			return err
		}
		d.killAll()
	}
}

// startMain starts the main process, unless it is running. The caller holds mu.
func (d *daemon) startMain(ctx context.Context, spec processSpec) error {
	if d.proc != nil && d.proc.alive() {
		return errors.New("start " + d.title + ": it is running; Stop or Kill it first")
	}
	proc, err := startProcess(ctx, spec)
	if err != nil {
		return err
	}
	d.proc = proc
	return nil
}

// process returns the present one, nil before the first start.
func (d *daemon) process() *process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.proc
}

// Alive says whether the broker's process is there; a paused one is.
func (d *daemon) Alive() bool {
	p := d.process()
	return p != nil && p.alive()
}

// PID returns the process id of the broker as last started.
func (d *daemon) PID() int { return d.process().pid() }

// Kill ends the broker as a crash would (SIGKILL) and waits until it is gone.
func (d *daemon) Kill() { d.process().kill() }

// Stop ends the broker as an operator would (SIGTERM) and waits until it is gone,
// 20 s at most; the error says that it then had to be killed.
func (d *daemon) Stop() error { return d.process().stop(stopGrace) }

// Pause stops the broker's threads (SIGSTOP) and leaves its connections open, as a
// long stall would. Resume, Kill, Stop and Close work on a paused broker.
func (d *daemon) Pause() error { return d.process().pause() }

// Resume continues a paused broker.
func (d *daemon) Resume() error { return d.process().signal(syscall.SIGCONT) }

// Close kills the broker and removes its folder. It may be called again.
func (d *daemon) Close() error {
	d.killAll() // nothing of it is kept, so nothing is gained by asking
	err := os.RemoveAll(d.dir)
	d.owner()
	d.mu.Lock()
	d.unclaim()
	d.mu.Unlock()
	if err != nil {
		return fmt.Errorf("remove the folder of %s: %w", d.title, err)
	}
	return nil
}

// killAll kills the broker and its helper.
func (d *daemon) killAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range []*process{d.proc, d.helper} {
		if p != nil {
			p.kill()
		}
	}
}

// Done is closed when the process as last started has ended.
func (d *daemon) Done() <-chan struct{} { return d.process().done }

// Dir returns the broker's folder: configuration, data and logs. It goes with
// Close.
func (d *daemon) Dir() string { return d.dir }

// LogFile returns the path of the broker's output.
func (d *daemon) LogFile() string { return filepath.Join(d.dir, "broker.log") }

// LogTail returns the last 40 lines of the broker's output; empty before the
// first start.
func (d *daemon) LogTail() string {
	if p := d.process(); p != nil {
		return p.tail()
	}
	return ""
}

//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// daemon is the common part of all brokers: a process that can be started again, with a
// folder of its own. Its methods may be called concurrently.
type daemon struct {
	title string // in messages
	dir   string
	log   string // file in dir
	owner func() // releases the folder

	mu     sync.Mutex
	proc   *process   // nil before the first start
	helper *process   // a process that the broker needs; it ends with Close; nil if there is none
	claims []*os.File // the lock files of its ports
}

// keepFor ends a broker with the test, and fails the test if the broker could not
// start. A test that fails logs the end of the broker's log.
func keepFor(tb testing.TB, title string, err error, logTail func() string, closing func() error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("this test needs a broker (%s): %v", title, err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the end of the broker's log:\n%s", logTail())
		}
		if err := closing(); err != nil {
			tb.Error(err)
		}
	})
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

// Pause stops the broker in its tracks (SIGSTOP) with its connections open, as a
// long stall would. Resume, Kill, Stop and Close work on a paused broker.
func (d *daemon) Pause() error { return d.process().pause() }

// Resume lets a paused broker go on.
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

// killAll kills the broker and its helper, as far as they have been started.
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
func (d *daemon) LogFile() string { return filepath.Join(d.dir, d.log) }

// LogTail returns the last 40 lines of the broker's output; empty before the
// first start.
func (d *daemon) LogTail() string {
	if p := d.process(); p != nil {
		return p.tail()
	}
	return ""
}

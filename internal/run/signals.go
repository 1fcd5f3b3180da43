package run

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// lastGrace bounds the end of a run after the second signal: each step of closing takes half a second then, and the
// summary is worth the wait. A third signal does not wait.
const lastGrace = 3 * time.Second

// UntilSignal calls f and returns its result, or false as soon as a signal comes; f then continues without effect.
func UntilSignal[T any](signals <-chan os.Signal, f func() T) (result T, ended bool) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case result = <-done:
		return result, true
	case <-signals:
		return result, false
	}
}

// supervise runs work and lets signals end it. The first one closes stop, the second cancels ctx; after a third, or
// lastGrace after the second, supervise returns without waiting for work. closed reports that the standard output has
// no reader any more, which ends the run like a first signal.
//
// drainTimeout bounds the wait for messages in flight then; 0 is no wait. When over is true, the run is complete, and
// work only waits for a signal: the first one ends it and interrupts nothing.
//
// It returns the result of work, and whether a signal, or the closed output, came meanwhile. The third result is false
// if it did not wait for work.
func supervise[T any](
	signals <-chan os.Signal, closed <-chan struct{}, say func(string), drainTimeout time.Duration, over *atomic.Bool,
	work func(ctx context.Context, stop <-chan struct{}) T,
) (outcome T, interrupted, waited bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan struct{})
	halt := sync.OnceFunc(func() { close(stop) })

	result := make(chan T, 1)
	go func() { result <- work(ctx, stop) }()

	var received int
	var hungUp bool
	var leave <-chan time.Time
	for {
		select {
		case outcome = <-result:
			return outcome, interrupted, true
		case <-closed:
			say("stopping: standard output was closed")
			closed = nil
			interrupted = true
			halt()
		case <-leave:
			return outcome, true, false
		case signal := <-signals:
			if signal == syscall.SIGHUP {
				if hungUp {
					continue // a terminal that goes sends one itself and has its shell send another
				}
				hungUp = true
			}
			received++
			if received == 1 && over.Load() {
				halt()
				continue
			}
			interrupted = true
			switch received {
			case 1:
				wait := ""
				if drainTimeout > 0 {
					wait = ": waiting up to " + drainTimeout.String() + " for messages in flight"
				}
				say("stopping" + wait + "; press Ctrl-C again to leave at once")
				halt()
			case 2:
				say("leaving at once")
				halt()
				cancel()
				leave = time.After(lastGrace)
			default:
				return outcome, true, false
			}
		}
	}
}

// pipeWriter tells when its output has no reader any more, as with "| head", and then swallows the rest: the run
// must still end in order and complete its files.
type pipeWriter struct {
	to     io.Writer
	closed chan struct{} // closed when the reader is gone

	mu     sync.Mutex
	broken bool
}

func newPipeWriter(to io.Writer) *pipeWriter { return &pipeWriter{to: to, closed: make(chan struct{})} }

// Write passes p on. It is safe for concurrent use.
func (w *pipeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return len(p), nil
	}
	n, err := w.to.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		w.broken = true
		close(w.closed)
		return len(p), nil
	}
	return n, err
}

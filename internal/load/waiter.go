package load

import (
	"context"
	"runtime"
	"time"
)

// How long before a message is due the spinning waiter stops sleeping: some times the usual lateness of its sleep.
const (
	spinCoarse  = 2 * time.Millisecond // of the runtime's timers
	spinPrecise = 200 * time.Microsecond
)

// sleeper sleeps for d and returns true, or returns false when the context that it was made with ended before.
type sleeper interface {
	sleep(d time.Duration) bool
	close()
}

// waiter waits for moments on the clock of a run, for one goroutine.
type waiter struct {
	ctx   context.Context //nolint:containedctx // a waiter lives within one call of Producer.Run
	clock *Clock
	sleeper
	spin time.Duration // poll the clock for that long before the moment
}

// newWaiter returns a waiter that gives up when ctx ends. With precise it sleeps by the best timer that the operating
// system has, if that can be had.
func newWaiter(ctx context.Context, clock *Clock, precise, spin bool) *waiter {
	w := &waiter{ctx: ctx, clock: clock}
	stretch := spinPrecise
	if precise {
		if s, err := newPreciseSleeper(ctx); err == nil {
			w.sleeper = s
		}
	}
	if w.sleeper == nil {
		w.sleeper, stretch = newTimerSleeper(ctx), spinCoarse
	}
	if spin {
		w.spin = stretch
	}
	return w
}

// until waits until t and returns true, or returns false when ctx ended before.
func (w *waiter) until(t time.Duration) bool {
	wake := t - w.spin
	for d := wake - w.clock.Now(); d > 0; d = wake - w.clock.Now() {
		if !w.sleep(d) {
			return false
		}
	}
	for w.spin > 0 && w.clock.Now() < t {
		if stopped(w.ctx) {
			return false
		}
		runtime.Gosched() // let the completions run on a machine with few processors
	}
	return true
}

// timerSleeper sleeps by the timers of the Go runtime, which may wake it 1 ms late: the runtime waits for the network
// and its timers in one call, whose time-out it gives in milliseconds.
type timerSleeper struct {
	ctx   context.Context //nolint:containedctx // as in waiter
	timer *time.Timer
}

func newTimerSleeper(ctx context.Context) *timerSleeper {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &timerSleeper{ctx: ctx, timer: t}
}

func (s *timerSleeper) sleep(d time.Duration) bool {
	s.timer.Reset(d)
	select {
	case <-s.timer.C:
		return true
	case <-s.ctx.Done():
		s.timer.Stop()
		return false
	}
}

func (s *timerSleeper) close() { s.timer.Stop() }

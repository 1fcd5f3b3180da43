package load

import (
	"context"
	"time"
)

// sleeper sleeps for d and returns true, or returns false if its context ends before.
type sleeper interface {
	sleep(d time.Duration) bool
	close()
}

// Waiter waits for moments on the clock of a run, for one goroutine.
type Waiter struct {
	clock *Clock
	sleeper
}

// NewWaiter returns a waiter that gives up when ctx ends. With precise it sleeps on the operating system's best timer,
// if available.
func NewWaiter(ctx context.Context, clock *Clock, precise bool) *Waiter {
	if precise {
		if s, err := newPreciseSleeper(ctx); err == nil {
			return &Waiter{clock: clock, sleeper: s}
		}
	}
	return &Waiter{clock: clock, sleeper: newTimerSleeper(ctx)}
}

// Close releases the waiter's resources.
func (w *Waiter) Close() { w.close() }

// Until waits until t and returns true, or returns false if ctx ends before.
func (w *Waiter) Until(t time.Duration) bool {
	for d := t - w.clock.Now(); d > 0; d = t - w.clock.Now() {
		if !w.sleep(d) {
			return false
		}
	}
	return true
}

// timerSleeper sleeps by the timers of the Go runtime, which may wake it 1 ms late: the runtime waits for the network
// and its timers in one call, whose time-out it gives in milliseconds.
type timerSleeper struct {
	ctx   context.Context //nolint:containedctx // a sleeper lives within one call of Producer.Run
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

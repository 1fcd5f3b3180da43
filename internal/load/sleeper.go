package load

import (
	"context"
	"time"
)

// Sleeper waits for moments on the clock of a run, for one goroutine.
type Sleeper struct {
	clock *Clock
	sleep func(d time.Duration) bool // returns true, or false if the context ends before
	// Close releases the sleeper's resources.
	Close func()
}

// NewSleeper returns a sleeper that gives up when ctx ends. With precise it sleeps on the operating system's best
// timer, if available.
func NewSleeper(ctx context.Context, clock *Clock, precise bool) *Sleeper {
	w := &Sleeper{clock: clock}
	if precise {
		if err := w.sleepPrecisely(ctx); err == nil {
			return w
		}
	}
	w.sleepByTimer(ctx)
	return w
}

// Until waits until t and returns true, or returns false if ctx ends before.
func (w *Sleeper) Until(t time.Duration) bool {
	for d := t - w.clock.Now(); d > 0; d = t - w.clock.Now() {
		if !w.sleep(d) {
			return false
		}
	}
	return true
}

// sleepByTimer lets it sleep by the timers of the Go runtime, which may wake it 1 ms late: the runtime waits for the
// network and its timers in one call, with a time-out in milliseconds.
func (w *Sleeper) sleepByTimer(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	w.Close = func() { timer.Stop() }
	w.sleep = func(d time.Duration) bool {
		timer.Reset(d)
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

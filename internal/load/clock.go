package load

import (
	"context"
	"time"
)

// Clock is the clock of a run: nanoseconds on the monotonic clock since the start of the load, and the wall-clock time
// in the messages, which is the wall-clock time of the start plus the monotonic time since. So setting the machine's
// clock during a run does not change the transfer times within this process.
type Clock struct {
	start time.Time
	epoch int64 // microseconds since the Unix epoch at start
	ahead time.Duration
}

// NewClock returns a running clock.
func NewClock() *Clock {
	c := new(Clock)
	c.Begin()
	return c
}

// Begin restarts the clock. It must not run concurrently with any other method.
func (c *Clock) Begin() {
	c.start = time.Now()
	c.epoch = c.start.Add(c.ahead).UnixMicro()
}

// BeginAt restarts the clock at a moment of the wall clock, which is about now: messages due at the start are due
// exactly then.
func (c *Clock) BeginAt(at time.Time) {
	now := time.Now()
	c.start = now.Add(at.Add(-c.ahead).Sub(now.Round(0)))
	c.epoch = at.UnixMicro()
}

// SetAhead sets the wall clock ahead of the machine's from the next Begin on, for tests with different clocks.
func (c *Clock) SetAhead(by time.Duration) { c.ahead = by }

// Start returns the start of the clock.
func (c *Clock) Start() time.Time { return c.start }

// Moment returns a moment as results have it: the wall-clock time of the start plus the monotonic time since. A change
// of the machine's clock after the start does not shift it.
func (c *Clock) Moment(t time.Time) time.Time { return c.start.Add(t.Sub(c.start)) }

// Now returns the time since the start.
func (c *Clock) Now() time.Duration { return time.Since(c.start) }

// Epoch converts a time since the start to microseconds since the Unix epoch.
func (c *Clock) Epoch(t time.Duration) int64 { return c.epoch + t.Microseconds() }

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

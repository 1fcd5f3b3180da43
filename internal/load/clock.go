package load

import "time"

// Clock tells the time of a run: nanoseconds on the monotonic clock since the start of the load, and the wall-clock
// time in the messages, which is that of the start plus the monotonic time since. So setting the machine's clock during
// a run does not disturb the transfer times within this process.
type Clock struct {
	start time.Time
	epoch int64 // microseconds since the Unix epoch at start
	ahead time.Duration
}

// NewClock returns a clock that has started.
func NewClock() *Clock {
	c := new(Clock)
	c.Begin()
	return c
}

// Begin starts the clock anew. It must not run at the same time as any other method.
func (c *Clock) Begin() {
	c.start = time.Now()
	c.epoch = c.start.Add(c.ahead).UnixMicro()
}

// BeginAt starts the clock anew at a moment of the wall clock, which is about now: messages due at its start are due
// exactly then.
func (c *Clock) BeginAt(at time.Time) {
	now := time.Now()
	c.start = now.Add(at.Add(-c.ahead).Sub(now.Round(0)))
	c.epoch = at.UnixMicro()
}

// Ahead lets the wall clock be taken for ahead of that of the machine, from the next Begin on: for tests of clocks that
// differ.
func (c *Clock) Ahead(by time.Duration) { c.ahead = by }

// Start returns when the clock was started.
func (c *Clock) Start() time.Time { return c.start }

// Now returns the time since the start.
func (c *Clock) Now() time.Duration { return time.Since(c.start) }

// Epoch converts a time since the start to microseconds since the Unix epoch.
func (c *Clock) Epoch(t time.Duration) int64 { return c.epoch + t.Microseconds() }

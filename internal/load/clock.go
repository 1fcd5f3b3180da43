package load

import "time"

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

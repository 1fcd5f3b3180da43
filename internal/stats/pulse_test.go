package stats

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// fakeClock is a run's clock that a test sets.
type fakeClock struct {
	start time.Time
	now   time.Duration
}

func (c *fakeClock) Now() time.Duration { return c.now }
func (c *fakeClock) Start() time.Time   { return c.start }

// Messages in flight during a pause of perfmq are marked, also before the pulse itself has noticed the pause:
// completions may be handled first.
func TestPulseSpans(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{start: time.Now()}
	p := NewPulse(clock)
	const ms = time.Millisecond
	beat := func(at time.Duration) {
		clock.now = at
		p.tick(at)
	}
	for at := time.Duration(0); at <= 1000*ms; at += beatInterval {
		beat(at)
	}
	require.False(t, p.Spans(0, 1005*ms), "slow, but nothing paused it")
	// It stands still from 1010 to 2010 ms.
	require.True(t, p.Spans(1009*ms, 2010*ms), "in flight, and the next beat has not come")
	require.True(t, p.Spans(100*ms, 2010*ms))
	require.False(t, p.Spans(2010*ms, 2011*ms), "sent afterwards")
	beat(2012 * ms)
	require.True(t, p.Spans(1009*ms, 2013*ms))
	require.True(t, p.Spans(10*ms, 3000*ms))
	require.False(t, p.Spans(2010*ms, 2013*ms))
	require.False(t, p.Spans(2020*ms, 2090*ms))
	beat(2012*ms + PauseLimit - 1) // late, as on a busy machine
	require.False(t, p.Spans(2020*ms, 2400*ms))

	n, _ := p.look(true)
	require.Equal(t, result.Tester{Pauses: 1, PauseMax: 1_012_000, PauseAt: clock.start.Add(2012 * ms).UnixMicro()}, n)
	n, _ = p.look(true)
	require.Zero(t, n)
	require.False(t, (*Pulse)(nil).Spans(0, time.Hour))
}

// A message that was due while perfmq was paused was sent late, however short the rest of the pause was.
func TestPulseDelayed(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	clock := &fakeClock{start: time.Now()}
	p := NewPulse(clock)
	require.False(t, p.Delayed(0, time.Hour), "no pause")
	for _, at := range []time.Duration{0, 20 * ms, 1000 * ms, 1020 * ms} {
		clock.now = at
		p.tick(at)
	}
	for _, tt := range []struct {
		due, began time.Duration
		want       bool
	}{
		{5 * ms, 6 * ms, false},
		{10 * ms, 999 * ms, true}, // sent before the beat that noticed the pause
		{10 * ms, 1001 * ms, true},
		{500 * ms, 1001 * ms, true},
		{999 * ms, 1001 * ms, true},
		{999 * ms, 999 * ms, false},
		{1000 * ms, 1300 * ms, false}, // late, but due afterwards
	} {
		require.Equal(t, tt.want, p.Delayed(tt.due, tt.began), "%s %s", tt.due, tt.began)
	}
	require.False(t, (*Pulse)(nil).Delayed(0, time.Hour))
}

// TestPausedMessages: each message counts once if one of its latencies, from when it was due, includes a pause.
func TestPausedMessages(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tt := range []struct {
		name                  string
		rated                 bool
		state                 driver.State
		intended, actual, end time.Duration
		want                  uint64
	}{
		{"in flight", true, driver.Accepted, 5 * ms, 5 * ms, 1001 * ms, 1},
		{"due, and sent after it", true, driver.Accepted, 300 * ms, 1001 * ms, 1002 * ms, 1},
		{"due at its end", true, driver.Accepted, 990 * ms, 1001 * ms, 1002 * ms, 1},
		{"held up by max-pending since before it", true, driver.Accepted, 5 * ms, 1100 * ms, 1101 * ms, 1},
		{"refused, sent after it", true, driver.Rejected, 300 * ms, 1001 * ms, 1002 * ms, 1},
		{"refused, in flight: it has no latency of that time", true, driver.Rejected, 5 * ms, 5 * ms, 1001 * ms, 0},
		{"sent again, without a rate", false, driver.Accepted, 300 * ms, 1001 * ms, 1002 * ms, 0},
		{"due afterwards", true, driver.Accepted, 1001 * ms, 1050 * ms, 1051 * ms, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock := &fakeClock{start: time.Now()}
			p := NewPulse(clock)
			for _, at := range []time.Duration{0, 20 * ms, 1000 * ms} {
				clock.now = at
				p.tick(at)
			}
			r := NewProducerRecorder(tt.rated, p)
			r.Begun(Measure)
			r.Handed(Measure, tt.actual-tt.intended)
			r.Done(End{Due: Measure, Intended: tt.intended, Actual: tt.actual}, driver.Outcome{State: tt.state}, tt.end)
			s := NewCollector([]*ProducerRecorder{r}, nil, clock.start).Collect(Measure, clock.start.Add(2*time.Second), true)
			require.Equal(t, tt.want, s.Total.Get(result.Paused))
		})
	}
}

func TestPulseBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := &steadyClock{start}
		p := NewPulse(clock)
		p.Start()
		<-time.After(10*time.Second + time.Millisecond)
		require.Equal(t, 10*time.Second, time.Duration(p.beat.Load()))
		n, _ := p.look(true)
		require.Zero(t, n.Pauses)
		p.Stop()
	})
}

// steadyClock tells the time of a bubble.
type steadyClock struct{ start time.Time }

func (c *steadyClock) Now() time.Duration { return time.Since(c.start) }
func (c *steadyClock) Start() time.Time   { return c.start }

package stats

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeClock is a run's clock that a test sets.
type fakeClock struct {
	start time.Time
	now   time.Duration
}

func (c *fakeClock) Now() time.Duration { return c.now }
func (c *fakeClock) Start() time.Time   { return c.start }

// Messages in flight while the tester stood still are told apart from others, also before the pulse itself has noticed
// the pause: completions may be handled first.
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
	require.False(t, p.Spans(0, 1005*ms), "slow, but nobody stood still")
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

	n, _ := p.take()
	require.Equal(t, pauses{count: 1, longest: 1012 * ms, at: clock.start.Add(2012 * ms)}, n)
	n, _ = p.take()
	require.Zero(t, n)
	require.False(t, (*Pulse)(nil).Spans(0, time.Hour))
}

func TestPulseBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := &steadyClock{start}
		p := NewPulse(clock)
		p.Start()
		<-time.After(10*time.Second + time.Millisecond)
		require.Equal(t, 10*time.Second, time.Duration(p.beat.Load()))
		n, looks := p.take()
		require.Zero(t, n.count)
		require.Equal(t, 50, looks.looks)
		p.Stop()
	})
}

// steadyClock tells the time of a bubble.
type steadyClock struct{ start time.Time }

func (c *steadyClock) Now() time.Duration { return time.Since(c.start) }
func (c *steadyClock) Start() time.Time   { return c.start }

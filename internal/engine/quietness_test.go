package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestQuietness: it is counted from the last message, and only while look is called.
func TestQuietness(t *testing.T) {
	now := time.Now()
	q := quietness{received: 5, looked: now, every: pollInterval}
	var last time.Duration
	look := func(after time.Duration, received uint64) time.Duration {
		now = now.Add(after)
		last = q.look(now, received)
		return last
	}
	for range 10 {
		look(pollInterval, 5)
	}
	require.Equal(t, 10*pollInterval, last)
	require.Zero(t, look(pollInterval, 6), "a message came")
	require.Equal(t, pollInterval, look(pollInterval, 6))
	require.LessOrEqual(t, look(time.Minute, 6), 5*pollInterval, "the process was stopped for a minute")
	require.Zero(t, look(pollInterval, 7), "and goes on to receive")
	for range 50 {
		look(2*pollInterval, 7)
	}
	require.Equal(t, 100*pollInterval, last, "a machine with much else to do")
}

package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestQuietness: it is counted from the last message, and only while somebody looks.
func TestQuietness(t *testing.T) {
	now := time.Now()
	q := quietness{received: 5, looked: now, every: poll}
	var last time.Duration
	look := func(after time.Duration, received uint64) time.Duration {
		now = now.Add(after)
		last = q.look(now, received)
		return last
	}
	for range 10 {
		look(poll, 5)
	}
	require.Equal(t, 10*poll, last)
	require.Zero(t, look(poll, 6), "a message came")
	require.Equal(t, poll, look(poll, 6))
	require.LessOrEqual(t, look(time.Minute, 6), 5*poll, "the process was stopped for a minute")
	require.Zero(t, look(poll, 7), "and goes on to receive")
	for range 50 {
		look(2*poll, 7)
	}
	require.Equal(t, 100*poll, last, "a machine with much else to do")
}

package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
)

// TestLongestOutage: of outages of which one has no end, nobody knows how long the longest lasted.
func TestLongestOutage(t *testing.T) {
	ended := []stats.Outage{{Confirmed: 3 * time.Second, Received: 2 * time.Second}, {Received: 4 * time.Second}}
	of := func(list ...stats.Outage) *stats.Summary { return &stats.Summary{Outages: list} }
	longest, ok := longestOutage(of(ended...))
	require.True(t, ok)
	require.Equal(t, 4*time.Second, longest)
	longest, ok = longestOutage(of(append(ended, stats.Outage{Workers: []string{"producer-0"}})...))
	require.True(t, ok, "its worker was done")
	require.Equal(t, 4*time.Second, longest)
	_, ok = longestOutage(of(append(ended, stats.Outage{NotBack: []string{"producer-0"}})...))
	require.False(t, ok)
	_, ok = longestOutage(of(append(ended, stats.Outage{Reconnected: time.Second})...))
	require.False(t, ok, "no message came through")
	longest, ok = longestOutage(of())
	require.True(t, ok, "there was none")
	require.Zero(t, longest)
}

package stats_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
)

// TestFullSeconds: as many as a run has whose intervals end in time; package engine compares it with runs.
func TestFullSeconds(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		warmup, duration time.Duration
		want             int
	}{
		{0, 0, 0},
		{0, 699 * ms, 0},
		{0, 700 * ms, 1},
		{0, 2699 * ms, 2},
		{0, 2700 * ms, 3},
		{0, 3 * time.Second, 3},
		{time.Second, 4 * time.Second, 3},
		{time.Second, 3699 * ms, 2},
		{300 * ms, 3 * time.Second, 3},
		{301 * ms, 3 * time.Second, 2},
		{500 * ms, 3500 * ms, 2}, // three seconds, but of which two are between cuts
		{500 * ms, 4 * time.Second, 3},
		{1100 * ms, 1900 * ms, 1},
		{1100 * ms, 1500 * ms, 0},
		{1300 * ms, 2700 * ms, 2},
		{0, 1 << 62, int((1 << 62) / time.Second)},
	} {
		require.Equal(t, tt.want, stats.FullSeconds(tt.warmup, tt.duration), "%v of %v", tt.warmup, tt.duration)
	}
}

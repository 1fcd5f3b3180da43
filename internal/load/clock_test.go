package load_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/clocktest"
	"github.com/perfmq/perfmq/internal/load"
)

// TestMoment: a moment after the wall clock was set is where it would be if it had not.
func TestMoment(t *testing.T) {
	c := load.NewClock()
	for _, set := range []time.Duration{0, -time.Hour, 25 * time.Hour} {
		got := c.Moment(clocktest.Set(t, c.Start().Add(1500*time.Millisecond), set))
		require.Equal(t, c.Start().Add(1500*time.Millisecond), got)
		require.Equal(t, 1500*time.Millisecond, got.Round(0).Sub(c.Start().Round(0)))
	}
	before := c.Moment(clocktest.Set(t, c.Start().Add(-time.Second), time.Hour))
	require.Equal(t, -time.Second, before.Round(0).Sub(c.Start().Round(0)))
}

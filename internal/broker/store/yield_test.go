package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestYieldTellsTheOthers(t *testing.T) {
	t.Parallel()
	d, q := queue(New(Config{}), "Q")
	told := [2]int{}
	var c [2]*Consumer
	for i := range c {
		var err error
		c[i], err = q.Consume(nil, func() { told[i]++ })
		require.NoError(t, err)
		bodies, _ := take(c[i], 1)
		require.Empty(t, bodies)
	}
	sendNumbers(t, d, 1, 1)
	require.Equal(t, [2]int{1, 0}, told)
	c[0].Yield() // it was told, and has no use for it
	require.Equal(t, [2]int{1, 1}, told)
	bodies, _ := take(c[1], 2)
	require.Equal(t, []string{"1"}, bodies)

	c[1].Yield() // before it is told
	bodies, _ = take(c[0], 1)
	require.Empty(t, bodies)
	sendNumbers(t, d, 2, 2)
	require.Equal(t, [2]int{2, 1}, told)
}

// TestWhoHasEnoughIsNotTold: one that got all that it asked for although it waited (it looked without having been told)
// may have no use for the next message, which must not be left to it.
func TestWhoHasEnoughIsNotTold(t *testing.T) {
	t.Parallel()
	d, q := queue(New(Config{}), "Q")
	told := [2]int{}
	var c [2]*Consumer
	for i := range c {
		var err error
		c[i], err = q.Consume(nil, func() { told[i]++ })
		require.NoError(t, err)
		bodies, _ := take(c[i], 1)
		require.Empty(t, bodies)
	}
	sendNumbers(t, d, 1, 1)
	require.Equal(t, [2]int{1, 0}, told)
	bodies, _ := take(c[1], 1) // is quicker than the one that was told
	require.Equal(t, []string{"1"}, bodies)
	bodies, _ = take(c[0], 1)
	require.Empty(t, bodies)
	sendNumbers(t, d, 2, 2)
	require.Equal(t, [2]int{2, 0}, told)
}

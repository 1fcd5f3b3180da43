package transport

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestInFlight: the end of each send is claimed once, under its own generation, whatever the broker names.
func TestInFlight(t *testing.T) {
	one, again := driver.NewSlot(299, math.MaxUint32), driver.NewSlot(299, 0)
	var ended []driver.Slot
	var s *InFlight
	s = NewInFlight(300, driver.DoneFunc(func(slot driver.Slot, _ driver.Outcome) {
		if ended = append(ended, slot); slot == one {
			s.Begin(again) // as soon as Done is called
		}
	}))
	now := t.Context()
	over, cancel := context.WithCancel(now)
	cancel()
	late := func(slot driver.Slot) bool { return s.Late(slot, driver.Outcome{}) }
	report := func(slots ...driver.Slot) { s.Report(slots, driver.Outcome{}) }

	require.False(t, s.Claim(one), "nothing was sent")
	s.Begin(one)
	for _, other := range []driver.Slot{again, driver.NewSlot(298, math.MaxUint32), driver.NewSlot(1, 1), driver.NewSlot(math.MaxUint32, 1)} {
		require.False(t, s.Claim(other), "%x", other)
	}
	require.False(t, s.Await(over))
	require.True(t, s.Claim(one))
	require.False(t, s.Claim(one), "twice")
	require.False(t, s.Undo(one), "its end is being reported")
	require.False(t, s.Await(over), "it is not reported")
	report(one)
	require.True(t, s.Claim(again), "it was freed as the one before it")
	require.False(t, late(again), "it is the present one")
	report(again)
	require.False(t, late(again), "nothing has followed it")
	require.False(t, late(one), "its end was reported")
	require.False(t, late(driver.NewSlot(299, 1)), "it was never sent")
	require.False(t, late(driver.NewSlot(math.MaxUint32, 1)), "there is no such place")
	require.True(t, s.Await(now))
	require.Equal(t, []driver.Slot{one, again}, ended)

	other := driver.NewSlot(299, 8)
	s.Begin(other)
	require.False(t, s.None())
	require.True(t, s.Undo(other))
	require.False(t, s.Claim(other), "it was not sent")
	require.True(t, s.None())

	s.Begin(driver.NewSlot(7, 1))
	s.Begin(driver.NewSlot(7, 3)) // the engine has given the first one up
	require.False(t, s.Claim(driver.NewSlot(7, 1)))
	require.False(t, late(driver.NewSlot(7, 3)), "it is the present one")
	require.False(t, late(driver.NewSlot(299, 9)), "it was never sent")
	require.True(t, late(driver.NewSlot(7, 1)))
	require.False(t, late(driver.NewSlot(7, 1)), "it was answered already")
	require.True(t, s.Claim(driver.NewSlot(7, 3)))
	report(driver.NewSlot(7, 3))

	ended = nil
	s.Begin(driver.NewSlot(0, 0))
	s.Begin(driver.NewSlot(256, 7))
	s.Begin(driver.NewSlot(257, 7))
	s.End([]driver.Slot{driver.NewSlot(256, 6), driver.NewSlot(256, 7), driver.NewSlot(255, 7)}, driver.Outcome{})
	require.Equal(t, []driver.Slot{driver.NewSlot(256, 7)}, ended)
	s.EndAll(driver.Outcome{})
	require.Equal(t, []driver.Slot{driver.NewSlot(256, 7), driver.NewSlot(0, 0), driver.NewSlot(257, 7)}, ended)
	require.True(t, s.Await(now))
}

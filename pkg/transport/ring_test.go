package transport

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCompact: values keep their order, and the ring its size, while one value stays at its front.
func TestCompact(t *testing.T) {
	var r Ring[int]
	r.Push(1)
	r.Push(2)
	for i := 3; i < 10_000; i++ {
		if r.Sparse() {
			r.Compact()
		}
		r.Push(i)
		require.Equal(t, i, r.Take(r.Next-1))
		require.Zero(t, r.Take(r.Next-1), "taken once")
	}
	assert.LessOrEqual(t, len(r.items), 2*minItems)
	assert.Equal(t, 2, r.Live)
	assert.Equal(t, 1, r.Take(r.First))
	assert.Equal(t, 2, r.Take(r.First))
	assert.Equal(t, r.First, r.Next)
}

// TestBacklog: a backlog keeps its order, and leaves no memory behind.
func TestBacklog(t *testing.T) {
	var r Ring[int]
	for i := range 2 * keptItems {
		r.Push(i + 1)
	}
	for i := range 2 * keptItems {
		require.Equal(t, i+1, r.Take(r.First))
		if r.Live == keptItems/8 {
			require.LessOrEqual(t, len(r.items), keptItems, "it shrinks")
		}
	}
	for range 2 * keptItems {
		r.Push(1)
	}
	for pos := r.Next - 1; r.Live > 0; pos-- {
		r.Take(pos)
	}
	assert.Nil(t, r.items)
	r.Push(7)
	assert.Equal(t, 7, r.Take(r.First))
}

// TestTrackerGap: the values behind a large gap keep their positions when the array shrinks with the first value.
func TestTrackerGap(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		var tr Tracker[int]
		for i := range 2 * keptItems {
			tr.Add(i + 1)
		}
		for pos := range uint64(15 * keptItems / 8) {
			tr.Remove(pos + 1)
		}
		if sparse { // it is about to move all to its map
			tr.Add(1)
			tr.Remove(2 * keptItems)
		}
		n := 0
		tr.Each(0, tr.Next, func(pos uint64) {
			require.Equal(t, int(pos)+1, tr.Remove(pos)) //nolint:gosec // small
			n++
		})
		require.Equal(t, keptItems/8, n)
	}
}

// TestTracker compares a tracker with a map, with values of any age.
func TestTracker(t *testing.T) {
	var tr Tracker[int]
	want := map[uint64]int{}
	for i := 1; i < 3000; i++ {
		want[tr.Next] = i
		tr.Add(i)
		if i > 3 && i%200 != 0 { // a few stay
			pos := uint64(i - 3)
			require.Equal(t, want[pos], tr.Get(pos))
			require.Equal(t, want[pos], tr.Remove(pos))
			require.Zero(t, tr.Remove(pos))
			delete(want, pos)
		}
	}
	assert.LessOrEqual(t, len(tr.items), 4*minItems)
	require.NotEmpty(t, tr.old)
	require.Greater(t, len(want), 10)
	require.Zero(t, tr.Get(tr.Next))
	require.Zero(t, tr.Remove(tr.Next))
	for _, bounds := range [][2]uint64{{0, tr.Next}, {500, 1500}, {tr.First, tr.Next + 100}, {tr.Next, tr.Next}} {
		var got, list []uint64
		tr.Each(bounds[0], bounds[1], func(pos uint64) { got = append(got, pos) })
		for pos := range want {
			if bounds[0] <= pos && pos <= bounds[1] {
				list = append(list, pos)
			}
		}
		slices.Sort(got)
		slices.Sort(list)
		require.Equal(t, list, got)
	}
	tr.Each(0, tr.Next, func(pos uint64) { tr.Remove(pos) })
	assert.Empty(t, tr.old)
	assert.Zero(t, tr.Live)
}

func TestEachSerial(t *testing.T) {
	const top = 1<<32 - 1
	for _, c := range []struct {
		from        uint64
		first, last uint32
		want        int // of ten
	}{
		{0, 0, 9, 10},
		{0, 0, top, 10},
		{0, 0, 1 << 31, 10},
		{0, 5, 3, 0},
		{0, 10, 20, 0},
		{0, 11, 20, 0},
		{0, top - 9, 9, 10},
		{0, 1 << 31, 1<<31 - 10, 0},
		{top - 4, top - 4, 4, 10},
		{top - 4, top, 0, 2},
		{top - 4, 0, 4, 5},
		{top - 4, 0, top, 10},
	} {
		var tr Tracker[int]
		tr.First, tr.Next = c.from, c.from
		for i := range 10 {
			tr.Add(i + 1)
		}
		require.Equal(t, 10, tr.Len())
		n := 0
		tr.EachSerial(c.first, c.last, func(uint64) { n++ })
		require.Equal(t, c.want, n, "%+v", c)
	}
}

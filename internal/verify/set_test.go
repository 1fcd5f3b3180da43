package verify

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Billions of numbers take next to nothing, with gaps as without.
func TestSetsAreSmall(t *testing.T) {
	t.Parallel()
	const billion, step = 1_000_000_000, 1 << 20
	for _, first := range []uint64{0, 1} { // 0 is missing
		s := newStream(Stream{})
		for n := first; n < 5*billion; n += step {
			s.add(&span{from: n, to: n + step})
		}
		require.Zero(t, s.Duplicates)
		require.Less(t, s.arrived.GetSizeInBytes(), uint64(3<<20))
	}
	every := newStream(Stream{}) // every third, as one of three consumers gets them
	for n := uint64(1); n < 3_000_000; n += 3 {
		every.add(&span{from: n, to: n + 1})
	}
	require.Less(t, every.arrived.GetSizeInBytes(), uint64(3_000_000/8*11/10), "a bit per number")
	for n := uint64(0); n < 3_000_000; n += 3 { // and then the others
		every.add(&span{from: n, to: n + 1})
		every.add(&span{from: n + 2, to: n + 3})
	}
	require.Zero(t, every.Duplicates)
	require.Less(t, every.arrived.GetSizeInBytes(), uint64(16<<10), "packed now and then")
	every.add(&span{from: 1_000_000, to: 1_000_010})
	require.EqualValues(t, 10, every.Duplicates)
}

package verify

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func (s *Set) all() []uint64 { return s.bitmap(0).ToArray() }

// Random ranges: the set agrees with a map.
func TestSetIsAMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		const size = 3000
		s, model := &Set{}, map[uint64]bool{}
		var again, wantAgain []uint64
		for range 300 {
			from := random.Uint64N(size)
			to := from + random.Uint64N(1+random.Uint64N(40))
			s.add(from, to, func(n uint64) { again = append(again, n) })
			for n := from; n < to; n++ {
				if model[n] {
					wantAgain = append(wantAgain, n)
				}
				model[n] = true
			}
			if random.IntN(3) == 0 {
				s.absorb()
			}
		}
		require.ElementsMatch(t, wantAgain, again)
		require.EqualValues(t, len(model), s.Len())
		require.Equal(t, slices.Max(slices.Collect(maps.Keys(model)))+1, s.End())
		var missing, wantMissing []uint64
		below := uint64(0)
		for n := range uint64(size) {
			require.Equal(t, below, s.below(n))
			require.Equal(t, model[n], s.Has(n))
			if model[n] {
				below++
			} else {
				wantMissing = append(wantMissing, n)
			}
		}
		s.missing(size, func(n uint64) bool { missing = append(missing, n); return true })
		require.Equal(t, wantMissing, missing)
		require.Equal(t, slices.Sorted(maps.Keys(model)), s.all())
	}
}

// Billions of numbers take next to nothing, with gaps as without.
func TestSetIsSmall(t *testing.T) {
	t.Parallel()
	none := func(uint64) { t.Error("there already") }
	const billion = 1_000_000_000
	s := &Set{}
	for n := uint64(0); n < 5*billion; n += 1 << 20 {
		s.add(n, n+1<<20, none)
		s.absorb()
	}
	require.Nil(t, s.rest)

	s = &Set{}
	s.add(1, 2, none) // 0 is missing
	for n := uint64(2); n < billion; n += 1 << 20 {
		s.add(n, n+1<<20, none)
		s.absorb()
	}
	require.Zero(t, s.low)
	require.Less(t, s.rest.GetSizeInBytes(), uint64(1<<20))

	every := &Set{} // every third, as one of three consumers gets them
	for n := uint64(1); n < 3_000_000; n += 3 {
		every.add(n, n+1, none)
	}
	require.Less(t, every.rest.GetSizeInBytes(), uint64(3_000_000/8*11/10), "a bit per number")
}

// BenchmarkSet is the cost per number, in the best case and in others.
func BenchmarkSet(b *testing.B) {
	none := func(uint64) {}
	b.Run("in order", func(b *testing.B) {
		s := &Set{}
		for n := range uint64(b.N) {
			s.add(n, n+1, none)
			s.absorb()
		}
	})
	b.Run("behind a gap", func(b *testing.B) {
		s := &Set{}
		for n := range uint64(b.N) {
			s.add(n+1, n+2, none)
		}
	})
	b.Run("every third", func(b *testing.B) {
		s := &Set{}
		for n := range uint64(b.N) {
			s.add(3*n+1, 3*n+2, none)
		}
	})
}

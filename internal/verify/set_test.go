package verify

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// collect adds ranges, and returns the set and the numbers that were there already.
func collect(ranges ...[2]uint64) (s *Set, again []uint64) {
	s = &Set{}
	for _, r := range ranges {
		s.add(r[0], r[1], func(n uint64) { again = append(again, n) })
		s.absorb()
	}
	return s, again
}

func (s *Set) all() []uint64 { return s.bitmap(0).ToArray() }

func TestSet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		ranges     [][2]uint64
		low        uint64
		all, again []uint64
	}{
		{"nothing", nil, 0, []uint64{}, nil},
		{"an empty range", [][2]uint64{{3, 3}}, 0, []uint64{}, nil},
		{"a prefix", [][2]uint64{{0, 2}, {2, 3}}, 3, []uint64{0, 1, 2}, nil},
		{"ahead", [][2]uint64{{2, 4}}, 0, []uint64{2, 3}, nil},
		{"a gap is closed", [][2]uint64{{2, 4}, {5, 6}, {0, 2}}, 4, []uint64{0, 1, 2, 3, 5}, nil},
		{"the prefix again", [][2]uint64{{0, 3}, {1, 4}}, 4, []uint64{0, 1, 2, 3}, []uint64{1, 2}},
		{"the rest again", [][2]uint64{{2, 5}, {3, 7}, {4, 5}}, 0, []uint64{2, 3, 4, 5, 6}, []uint64{3, 4, 4}},
		{"over everything", [][2]uint64{{0, 1}, {3, 4}, {6, 7}, {0, 9}}, 9, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8}, []uint64{0, 3, 6}},
		{"between", [][2]uint64{{2, 3}, {8, 9}, {4, 6}, {5, 7}}, 0, []uint64{2, 4, 5, 6, 8}, []uint64{5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, again := collect(tt.ranges...)
			require.Equal(t, tt.low, s.low)
			require.Equal(t, tt.all, s.all())
			require.Equal(t, tt.again, again)
			require.EqualValues(t, len(tt.all), s.Len())
			if len(tt.all) > 0 {
				require.Equal(t, tt.all[len(tt.all)-1]+1, s.End())
			}
			for n := range uint64(12) {
				require.Equal(t, slices.Contains(tt.all, n), s.Has(n))
				below := 0
				for _, m := range tt.all {
					if m < n {
						below++
					}
				}
				require.EqualValues(t, below, s.below(n))
			}
		})
	}
}

// Random ranges: the set agrees with a map.
func TestSetIsAMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		const size = 3000
		s, model, again, wantAgain := &Set{}, map[uint64]bool{}, 0, 0
		for range 300 {
			from := random.Uint64N(size)
			to := from + random.Uint64N(1+random.Uint64N(40))
			s.add(from, to, func(uint64) { again++ })
			for n := from; n < to; n++ {
				if model[n] {
					wantAgain++
				}
				model[n] = true
			}
			if random.IntN(3) == 0 {
				s.absorb()
			}
		}
		require.Equal(t, wantAgain, again)
		require.EqualValues(t, len(model), s.Len())
		var missing, wantMissing []uint64
		for n := range uint64(size) {
			require.Equal(t, model[n], s.Has(n))
			if !model[n] {
				wantMissing = append(wantMissing, n)
			}
		}
		s.missing(size, func(n uint64) bool { missing = append(missing, n); return true })
		require.Equal(t, wantMissing, missing)
		require.Equal(t, len(model), len(s.all()))
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

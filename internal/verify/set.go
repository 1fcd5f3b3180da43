package verify

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

const (
	// optimizeAfter numbers, at least, are added before a set is packed again.
	optimizeAfter = 1 << 20
	// absorbAtMost bounds the numbers that one call moves into the prefix, and so its time.
	absorbAtMost = 1 << 22
)

// Set is an exact set of numbers. A prefix without gaps takes no memory at all, ranges next to none, and the worst
// pattern about a bit for each number up to the highest. It is not safe for concurrent use. The zero value is empty.
type Set struct {
	low      uint64            // all below are in
	rest     *roaring64.Bitmap // and these, none of which is below low; nil until needed
	count    uint64            // of rest
	min, max uint64            // of rest, unless it is empty
	loose    uint64            // numbers added since rest was packed
}

// Len returns the number of numbers in the set.
func (s *Set) Len() uint64 { return s.low + s.count }

// Has reports whether n is in the set.
func (s *Set) Has(n uint64) bool {
	return n < s.low || s.count > 0 && n >= s.min && n <= s.max && s.rest.Contains(n)
}

// End returns the highest number in the set plus one; 0 if it is empty.
func (s *Set) End() uint64 {
	if s.count > 0 {
		return s.max + 1
	}
	return s.low
}

// below counts the numbers in the set that are less than n.
func (s *Set) below(n uint64) uint64 {
	switch {
	case n <= s.low:
		return n
	case s.count == 0:
		return s.low
	case n > s.max:
		return s.low + s.count
	default:
		return s.low + s.rest.Rank(n-1)
	}
}

// add adds all numbers from from up to, but not including, to, and calls again for each that is in the set already. The
// caller calls absorb at times.
func (s *Set) add(from, to uint64, again func(n uint64)) {
	for ; from < to && from < s.low; from++ {
		again(from)
	}
	switch {
	case from >= to:
		return
	case from == s.low && (s.count == 0 || to <= s.min):
		s.low = to
		return
	case s.rest == nil:
		s.rest = roaring64.New()
	}
	if s.count == 0 {
		s.min, s.max = math.MaxUint64, 0
	}
	switch {
	case to-from == 1:
		s.addOne(from, again)
	case s.count == 0 || from > s.max || to <= s.min:
		s.rest.AddRange(from, to)
		s.count += to - from
		s.pack(to - from)
	default:
		for n := from; n < to; n++ {
			s.addOne(n, again)
		}
	}
	s.min, s.max = min(s.min, from), max(s.max, to-1)
}

func (s *Set) addOne(n uint64, again func(n uint64)) {
	if !s.rest.CheckedAdd(n) {
		again(n)
		return
	}
	s.count++
	s.pack(1)
}

// pack compresses the set when enough numbers have been added since the last time; rarer the larger it is, as that
// looks at all of it.
func (s *Set) pack(added uint64) {
	if s.loose += added; s.loose >= max(optimizeAfter, s.count/8) {
		s.rest.RunOptimize()
		s.loose = 0
	}
}

// absorb moves numbers that now continue the prefix into it.
func (s *Set) absorb() {
	if s.count == 0 || s.min != s.low {
		return
	}
	end := s.low
	for it := s.rest.Iterator(); it.HasNext() && it.PeekNext() == end && end-s.low < absorbAtMost; end++ {
		it.Next()
	}
	s.rest.RemoveRange(s.low, end)
	s.count -= end - s.low
	s.low = end
	if s.count > 0 {
		s.min = s.rest.Minimum()
	}
}

// measure sets the fields that follow from rest.
func (s *Set) measure() {
	if s.count = s.rest.GetCardinality(); s.count > 0 {
		s.min, s.max = s.rest.Minimum(), s.rest.Maximum()
	}
}

// bitmap returns a copy of the set as one bitmap, without numbers below from, which is no more than low.
func (s *Set) bitmap(from uint64) *roaring64.Bitmap {
	b := roaring64.New()
	if s.count > 0 {
		b = s.rest.Clone()
	}
	b.AddRange(from, s.low)
	return b
}

// missing calls visit for the numbers below end that are not in the set, in order, until it returns false.
func (s *Set) missing(end uint64, visit func(n uint64) bool) {
	next := s.low
	if s.count > 0 {
		for it := s.rest.Iterator(); it.HasNext() && next < end; {
			n := it.Next()
			for ; next < min(n, end); next++ {
				if !visit(next) {
					return
				}
			}
			next = n + 1
		}
	}
	for ; next < end; next++ {
		if !visit(next) {
			return
		}
	}
}

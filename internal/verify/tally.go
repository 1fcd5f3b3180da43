package verify

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// maxTally bounds the count of a number: copies and resends of one message beyond it look alike.
const maxTally = 8

// tally counts the additions of each number. The set at i holds the numbers added more than i times.
type tally []*roaring64.Bitmap

func (t *tally) add(n uint64) {
	for _, set := range *t {
		if set.CheckedAdd(n) {
			return
		}
	}
	if len(*t) < maxTally {
		*t = append(*t, roaring64.BitmapOf(n))
	}
}

// remove takes the last add of a number back.
func (t tally) remove(n uint64) {
	for _, set := range slices.Backward(t) {
		if set.CheckedRemove(n) {
			return
		}
	}
}

// of returns the number of additions of a number.
func (t tally) of(n uint64) (times uint64) {
	for _, set := range t {
		if !set.Contains(n) {
			break
		}
		times++
	}
	return times
}

// plus returns the tally of the numbers of both.
func (t tally) plus(o tally) (sum tally) {
	for _, set := range t {
		sum = append(sum, set.Clone())
	}
	for _, set := range o {
		for it := set.Iterator(); it.HasNext(); {
			sum.add(it.Next())
		}
	}
	return sum
}

// extra counts the copies of each message beyond its first.
func (s *stream) extra() tally { return append(tally{s.doubled}, s.More...) }

// explain counts the copies in a stream that came because their messages were sent again: per message no more than its
// resends. It includes copies that an outage explains, too.
func (s *stream) explain(resent tally) (twice, counted uint64) {
	if len(resent) == 0 || s.doubled.IsEmpty() {
		return 0, 0
	}
	copies := s.extra()
	for it := roaring64.And(s.doubled, resent[0]).Iterator(); it.HasNext(); {
		n := it.Next()
		came, after := copies.of(n), s.Outaged.of(n)
		explained := min(came, resent.of(n))
		twice += explained
		counted += after - min(after, came-explained)
	}
	return twice, counted
}

// unexplained returns the messages with a copy that neither an outage nor a resend explains.
func (s *stream) unexplained(resent tally) *roaring64.Bitmap {
	if len(resent) == 0 && len(s.Outaged) == 0 {
		return s.doubled
	}
	copies, list := s.extra(), roaring64.New()
	for it := s.doubled.Iterator(); it.HasNext(); {
		if n := it.Next(); copies.of(n) > s.Outaged.of(n)+resent.of(n) {
			list.Add(n)
		}
	}
	return list
}

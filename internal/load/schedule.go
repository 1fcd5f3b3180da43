package load

import (
	"errors"
	"math"
	"math/big"
	"sort"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/quantity"
)

// Schedule determines when each message of a load is due: a list of segments, each a rate or a change of it. The zero
// value is the closed loop: messages have no due times. A Schedule is immutable and may be shared between goroutines.
//
// With C(t) the integral of the rate from the start of the load to t, message n is due when C begins to exceed n,
// rounded down to a nanosecond. So message 0 of a rate is due at once, no message is due while the rate is 0, and the
// fraction of a message that a segment leaves over is continued by the next rate above 0. C is an exact number: no
// error adds up, over time or over segments.
//
// That is of even arrivals. The messages of segments with random arrivals are a Poisson process with the rate of the
// segment: [Draws] decide when each is due, and methods such as At return what is expected.
type Schedule struct{ table *timetable }

// timetable is a list of segments in the form that messages are looked up in.
type timetable struct {
	segments []segment
	// pieces have a rate above 0; pauses are the time between them. Piece i has the messages from first[i] to below
	// first[i+1]. If the schedule ends, first has one more element: the number of all messages.
	pieces []piece
	first  []uint64
	total  wide          // the integral at the end
	end    time.Duration // 0 if there is none
	peak   Rate
	// poisson: segments have random arrivals unless they say even; random: some have.
	poisson, random bool
}

// never is the due time of a message that is never due.
const never = time.Duration(math.MaxInt64)

// ConstantSchedule returns the schedule of one rate without an end. The zero rate makes the closed loop.
func ConstantSchedule(r Rate) Schedule {
	var b builder
	_ = b.add(segment{Kind: segmentConstant, From: r, To: r}) // it is not too long
	s, _ := b.schedule()                                      // of no rate there is none
	return s
}

// IsZero reports whether there is no schedule: the closed loop.
func (s Schedule) IsZero() bool { return s.table == nil }

// Constant returns the rate of a schedule with one rate and no end.
func (s Schedule) Constant() (r Rate, ok bool) {
	if s.table == nil || len(s.table.segments) > 1 || s.table.segments[0].Length > 0 {
		return 0, false
	}
	return s.table.peak, true
}

// At returns the intended time of message n (counted from 0 over all producers) from the start of the load, rounded
// down to a nanosecond. It never decreases with n. It is math.MaxInt64 for messages after the end of the schedule,
// beyond the range of a Duration (292 years), and of the closed loop.
func (s Schedule) At(n uint64) time.Duration {
	t := s.table
	if t == nil {
		return never
	}
	i, above := 0, len(t.first)
	for above-i > 1 { // first[i] <= n < first[above]
		if m := int(uint(i+above) / 2); t.first[m] <= n {
			i = m
		} else {
			above = m
		}
	}
	if i == len(t.pieces) {
		return never
	}
	return t.pieces[i].dueTime(product(n, wholeMessage))
}

// Random reports whether messages are due at random, in some segments at least.
func (s Schedule) Random() bool { return s.table != nil && s.table.random }

// Due returns the number of messages due before t, with At(n) < t.
func (s Schedule) Due(t time.Duration) uint64 {
	if t <= 0 || s.table == nil {
		return 0
	}
	return s.table.integral(t).messages()
}

// integral returns C(t).
func (t *timetable) integral(at time.Duration) wide {
	i := sort.Search(len(t.pieces), func(i int) bool { return t.pieces[i].start >= at })
	if i == 0 {
		return wide{}
	}
	return t.pieces[i-1].integral(at)
}

// End returns when the schedule ends. It is false if the last segment has no end, and for the closed loop.
func (s Schedule) End() (end time.Duration, ok bool) {
	if s.table == nil {
		return 0, false
	}
	return s.table.end, s.table.end > 0
}

// Peak returns the highest rate in messages per second; 0 for the closed loop.
func (s Schedule) Peak() float64 {
	if s.table == nil {
		return 0
	}
	return s.table.peak.PerSecond()
}

// Average returns the mean rate in messages per second over the given time from the start of the load, which may be
// beyond the end of the schedule; 0 for a time of 0 and for the closed loop.
func (s Schedule) Average(span time.Duration) float64 { return s.Between(0, span) }

// Between returns the mean rate in messages per second between two times from the start of the load, which may be
// beyond the end of the schedule; 0 for a time of 0 and for the closed loop.
func (s Schedule) Between(from, to time.Duration) float64 {
	if from = max(0, from); to <= from || s.table == nil {
		return 0
	}
	sum := s.table.integral(to).minus(s.table.integral(from))
	return sum.float() / wholeMessage / (to - from).Seconds()
}

// String returns the schedule in the form that [ParseSchedule] reads, the same one for equal schedules; empty for the
// closed loop.
func (s Schedule) String() string {
	if s.table == nil {
		return ""
	}
	var texts []string
	for _, g := range s.table.segments {
		texts = append(texts, g.String())
	}
	return strings.Join(texts, ", ")
}

// Rate is a number of messages per second in billionths, so that no rounding adds up over days. The zero value means no
// target: as fast as possible.
type Rate uint64

// maxRate bounds rates so that two messages are due at different nanoseconds.
const maxRate = 1_000_000_000

// ParseRate reads a number of messages per second, such as 30000, 30k, 0.5 or 33.333: above zero, at most 1e9, and
// exact to nine decimals.
func ParseRate(s string) (Rate, error) {
	r, err := quantity.Number(strings.TrimPrefix(s, "+"))
	if err != nil || r.Sign() == 0 || r.Cmp(big.NewRat(maxRate, 1)) > 0 {
		return 0, errors.New("must be messages per second, a number above 0 and at most 1000000000, such as 30000, " +
			"30k or 0.5")
	}
	if r.Mul(r, big.NewRat(int64(time.Second), 1)); !r.IsInt() {
		return 0, errors.New("must have at most nine decimals")
	}
	return Rate(r.Num().Uint64()), nil
}

// IsZero reports whether there is no target.
func (r Rate) IsZero() bool { return r == 0 }

// PerSecond returns the rate as a number, for display.
func (r Rate) PerSecond() float64 { return float64(r) / float64(time.Second) }

// String returns the rate in the form that [ParseRate] reads, without an exponent; 0 for no target.
func (r Rate) String() string {
	perSecond := big.NewRat(int64(r), int64(time.Second)) //nolint:gosec // at most 1e18
	decimals, _ := perSecond.FloatPrec()
	return perSecond.FloatString(decimals)
}

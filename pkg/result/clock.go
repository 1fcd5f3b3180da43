package result

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Clock is the offset of a part's clock against the clock of the first part, at the start and at the end of the run.
//
// Let host A send a message at time a of its clock, and host B receive it at time b of its clock. The transfer took at
// least zero time, so B's clock is ahead of A's clock by b-a at most; a message from B to A bounds the offset from
// below. The offset is the middle between the two bounds, and its error is half their distance: half of the fastest
// round trip of all messages of the run. That is the measurement of NTP (RFC 5905, section 8), and like NTP it assumes
// nothing about how the two directions differ. As clocks run at different speeds, a bound gets wider by 30 us for each
// second between the message and the moment of use: each clock is assumed to drift by 15 us a second at most (PHI of
// RFC 5905).
//
// A rendezvous measures the offsets of its shards by requests and answers over HTTP. Where these know the offset
// better, or no messages went both ways, Clock is the difference of two of them.
//
// Without both, or with clocks that drift more than that, the offset is not known.
type Clock struct {
	// Start is the offset when the load began.
	Start Offset `json:"start"`
	// End is the offset when the run ended.
	End Offset `json:"end"`
}

// Offset is how far one clock was ahead of another.
type Offset struct {
	// Ahead is the offset in microseconds; below zero if the clock was behind.
	Ahead Difference `json:"ahead"`
	// Error is the largest distance of the true offset from Ahead, in microseconds.
	Error int64 `json:"error"`
}

const (
	// drift is the largest assumed drift between two clocks, in parts per million.
	drift = 30
	// rounding is the largest error of a bound that comes from message times in whole microseconds.
	rounding = 5
)

// unbounded means no bound: it is beyond any run, and far enough from overflows.
const unbounded = math.MaxInt64 / 4

// errContradiction reports message times that cannot all be true.
var errContradiction = errors.New("the times in the messages contradict each other: the clocks were set, or drifted")

// clocksOf returns the offsets of the shards of a run, in their order. An unknown offset is nil.
func clocksOf(shards []*Result) ([]*Clock, error) {
	list := make([]*Clock, len(shards))
	list[0] = &Clock{}
	var end int64
	for _, s := range shards {
		for _, row := range s.Rows {
			end = max(end, row.Elapsed)
		}
	}
	for i, s := range shards[1:] {
		atStart, err := offset(shards[0], s, 0)
		if err != nil {
			return make([]*Clock, len(shards)), err
		}
		atEnd, err := offset(shards[0], s, end)
		if err != nil {
			return make([]*Clock, len(shards)), err
		}
		if atStart != nil && atEnd != nil {
			list[i+1] = &Clock{Start: *atStart, End: *atEnd}
		}
	}
	return list, nil
}

// offset returns the lead of a shard's clock over the first one's at a moment, in microseconds since the start; nil if
// it is unknown.
func offset(first, s *Result, at int64) (*Offset, error) {
	o := met(first, s, at)
	switch high, low := ahead(first, s, at), ahead(s, first, at); {
	case high == unbounded || low == unbounded:
	case high+low < 0:
		return nil, errContradiction
	case o == nil || (high+low)/2+1 <= o.Error:
		o = &Offset{Ahead: Difference((high - low) / 2), Error: (high+low)/2 + 1}
	}
	return o, nil
}

// met is offset by the clock of the rendezvous alone, at the start or the end.
func met(first, s *Result, at int64) *Offset {
	a, b := first.met(at), s.met(at)
	if a == nil || b == nil {
		return nil
	}
	return &Offset{Ahead: b.Ahead - a.Ahead, Error: a.Error + b.Error}
}

// met returns the lead over the clock of the rendezvous.
func (r *Result) met(at int64) *Offset {
	switch {
	case r.Clock == nil || at == 0:
		return r.Clock
	case r.ClockEnd != nil:
		return r.ClockEnd
	default: // it was killed
		return &Offset{Ahead: r.Clock.Ahead, Error: r.Clock.Error + Drift(time.Duration(at)*time.Microsecond)}
	}
}

// ahead returns the largest possible lead of a shard's clock over another's, as its fastest message shows.
func ahead(from, to *Result, at int64) int64 {
	most := int64(unbounded)
	apart := max(to.Start-from.Start, from.Start-to.Start) // between the two starts, from which the shards count
	for _, row := range to.Rows {
		away := max(row.Elapsed-at, at-(row.Elapsed-row.Length), 0) + apart
		for _, a := range row.Arrivals {
			if a.Shard == from.Shard.Number && a.Messages > 0 {
				most = min(most, int64(a.Fastest)+rounding+away/second*drift+drift)
			}
		}
	}
	return most
}

// text describes the offset of the host's clock against the reference.
func (c *Clock) text(host, reference string) string {
	text := fmt.Sprintf("the clock of %s was %s ahead of that of %s", host, c.Start, reference)
	if moved := c.End.Ahead - c.Start.Ahead; max(moved, -moved) > Difference(c.Start.Error+c.End.Error) {
		text += fmt.Sprintf(", and %s at the end", c.End)
	}
	return text
}

// String returns a text such as "1.998 s +- 0.010 s", or milliseconds with three decimals below a second.
func (o Offset) String() string {
	unit, name := 1e3, "ms"
	if max(o.Ahead, -o.Ahead) >= 1_000_000 {
		unit, name = 1e6, "s"
	}
	return fmt.Sprintf("%.3f %s +- %.3f %s", float64(o.Ahead)/unit, name, float64(o.Error)/unit, name)
}

// bound returns the largest possible absolute value of the offset.
func (c *Clock) bound() int64 {
	width := func(o Offset) int64 { return int64(max(o.Ahead, -o.Ahead)) + o.Error }
	return max(width(c.Start), width(c.End))
}

// Drift returns by how many microseconds two clocks may drift apart in a time.
func Drift(d time.Duration) int64 { return max(0, d.Microseconds())/second*drift + drift }

package result

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Clock is the offset of a part's clock against the clock of the first part, at the start and at the end of the run.
//
// Let host A send a message at time a of its clock, and host B receive it at time b of its clock. The transfer took at
// least zero time, so B's clock is ahead of A's clock by b-a at most; a message from B to A bounds the offset from
// below. The offset is the middle between the two bounds, and its error is half their distance: half of the fastest
// round trip of all messages of the run. That is the measurement of NTP (RFC 5905, section 8), and like NTP it assumes
// nothing about how the two directions differ. Bounds are combined over third hosts. As clocks run at different speeds,
// a bound gets wider by 30 us for each second between the message and the moment of use: each clock is assumed to drift
// by 15 us a second at most (PHI of RFC 5905).
//
// Without messages in both directions, or with clocks that drift more than that, the offset is not known.
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

// errContradiction reports message times of which not all can be true.
var errContradiction = errors.New("the times in the messages contradict each other, as if the clocks had been set " +
	"during the run, or drifted")

// clocksOf returns the offsets of the parts, in their order: shards of one run. An unknown offset is nil.
func clocksOf(parts []*Result) ([]*Clock, error) {
	list := make([]*Clock, len(parts))
	var end int64
	for _, p := range parts {
		end = max(end, p.length())
	}
	starts, err := offsets(parts, 0)
	if err != nil {
		return list, err
	}
	ends, err := offsets(parts, end)
	for i := range parts {
		if starts[i] != nil && ends[i] != nil {
			list[i] = &Clock{Start: *starts[i], End: *ends[i]}
		}
	}
	return list, err
}

// length returns how long the load and the drain took, as far as the rows show.
func (r *Result) length() (length int64) {
	for i := range r.Rows {
		length = max(length, r.Rows[i].Elapsed)
	}
	return length
}

// offsets returns how far the clock of each part was ahead of the first part's clock at a moment, in microseconds since
// the start.
func offsets(parts []*Result, at int64) ([]*Offset, error) {
	known := make([]*Offset, len(parts))
	most, err := bounds(parts, at)
	if err != nil {
		return known, err
	}
	for i := range parts {
		high, low := most[0][i], most[i][0]
		if high >= unbounded/2 || low >= unbounded/2 {
			continue
		}
		known[i] = &Offset{Ahead: Difference((high - low) / 2), Error: (high+low)/2 + 1}
		if i == 0 {
			known[i] = &Offset{}
		}
	}
	return known, nil
}

// bounds returns the upper bounds of the offsets: the clock of part k was ahead of the clock of part i by at most
// most[i][k].
func bounds(parts []*Result, at int64) (most [][]int64, err error) {
	of := map[int]int{} // places by number of the shard
	most = make([][]int64, len(parts))
	for i, p := range parts {
		most[i] = slices.Repeat([]int64{unbounded}, len(parts))
		most[i][i] = 0
		if p.Shard != nil {
			of[p.Shard.Number] = i
		}
	}
	for to, p := range parts {
		apart := max(p.Start-parts[0].Start, parts[0].Start-p.Start) // between the two starts, from which the parts count
		for r := range p.Rows {
			row := &p.Rows[r]
			away := max(row.Elapsed-at, at-(row.Elapsed-row.Length), 0) + apart
			for _, a := range row.Arrivals {
				if from, there := of[a.Shard]; there && a.Messages > 0 && from != to {
					most[from][to] = min(most[from][to], int64(a.Fastest)+rounding+away/1_000_000*drift+drift)
				}
			}
		}
	}
	for via := range parts {
		for i := range parts {
			if most[i][via] >= unbounded/2 {
				continue
			}
			for k := range parts {
				if d := most[via][k]; d < unbounded/2 {
					most[i][k] = min(most[i][k], most[i][via]+d)
				}
			}
			// Check at once: in a cycle in which each clock is behind the one before, bounds double with each host.
			if most[i][i] < 0 || slices.Min(most[i]) < -unbounded/2 {
				return nil, errContradiction
			}
		}
	}
	return most, nil
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
func (o Offset) bound() int64 { return int64(max(o.Ahead, -o.Ahead)) + o.Error }

// byShard orders shards by their numbers, and other results by their starts.
func byShard(a, b *Result) int {
	if a.Shard != nil && b.Shard != nil {
		return cmp.Compare(a.Shard.Number, b.Shard.Number)
	}
	return cmp.Compare(a.Start, b.Start)
}

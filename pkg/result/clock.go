package result

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Clock is how far the clock of a part was ahead of that of the first part, when the run began and when it ended.
//
// A message that host A sends at a by its clock, and that host B receives at b by its clock, was under way for no less
// than no time, so that the clock of B is ahead of that of A by b-a at most; and a message from B to A bounds it from
// below. The offset is in the middle between the two bounds, and its error is half their distance: half of the fastest
// way there and back, of all messages of the run. That is the measurement of NTP (RFC 5905, section 8), and like that
// it assumes nothing about how the two ways differ. Bounds are combined over third hosts. As clocks run at different
// speeds, a bound gets wider by 30 us for each second between the message and the moment that it is used for: each
// clock is taken to be off by 15 us in a second at most (PHI of RFC 5905).
//
// Without messages in both directions, or of clocks that drift more than that, the offset is not known.
type Clock struct {
	// Start is the offset when the load began.
	Start Offset `json:"start"`
	// End is the offset when the run ended.
	End Offset `json:"end"`
}

// Offset is by how much a clock was ahead of another.
type Offset struct {
	// Ahead is the offset in microseconds; below zero if the clock was behind.
	Ahead Difference `json:"ahead"`
	// Error is how far the true offset may be from that, in microseconds.
	Error int64 `json:"error"`
}

const (
	// drift is by how many parts of a million two clocks are taken to drift apart at most.
	drift = 30
	// rounding is how much the times in messages, which are whole microseconds, may add to a bound.
	rounding = 5
)

// unbounded is no bound: beyond any run, and far enough from overflows.
const unbounded = math.MaxInt64 / 4

// errContradiction is for clocks whose times in the messages cannot all be true.
var errContradiction = errors.New("the times in the messages contradict each other, as if the clocks had been set " +
	"during the run, or drifted")

// clocksOf returns the offsets of the parts, in their order: shards of one run. One that is not known is nil.
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

// length returns how long the load and the drain took, as far as rows tell.
func (r *Result) length() (length int64) {
	for i := range r.Rows {
		length = max(length, r.Rows[i].Elapsed)
	}
	return length
}

// offsets returns by how much the clock of each part was ahead of that of the first at a moment, in microseconds since
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

// bounds returns by how much the clock of part k was ahead of that of part i at most: most[i][k].
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
		apart := max(p.Start-parts[0].Start, parts[0].Start-p.Start) // of the moments from which both count
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
			// At once: in a circle in which each clock is behind the one before, bounds double with each host.
			if most[i][i] < 0 || slices.Min(most[i]) < -unbounded/2 {
				return nil, errContradiction
			}
		}
	}
	return most, nil
}

// text says the offset in words, of a host whose clock it is, and the reference.
func (c *Clock) text(host, reference string) string {
	text := fmt.Sprintf("the clock of %s was %s ahead of that of %s", host, c.Start, reference)
	if moved := c.End.Ahead - c.Start.Ahead; max(moved, -moved) > Difference(c.Start.Error+c.End.Error) {
		text += fmt.Sprintf(", and %s at the end", c.End)
	}
	return text
}

// String returns such as "1.998 s +- 0.010 s", with milliseconds of three decimals if it is below a second.
func (o Offset) String() string {
	unit, name := 1e3, "ms"
	if max(o.Ahead, -o.Ahead) >= 1_000_000 {
		unit, name = 1e6, "s"
	}
	return fmt.Sprintf("%.3f %s +- %.3f %s", float64(o.Ahead)/unit, name, float64(o.Error)/unit, name)
}

// bound returns how far the offset may be from none.
func (o Offset) bound() int64 { return int64(max(o.Ahead, -o.Ahead)) + o.Error }

// byShard puts shards into the order of their numbers; other results into that of their starts.
func byShard(a, b *Result) int {
	if a.Shard != nil && b.Shard != nil {
		return cmp.Compare(a.Shard.Number, b.Shard.Number)
	}
	return cmp.Compare(a.Start, b.Start)
}

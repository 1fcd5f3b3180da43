package load

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Draws decide random arrivals, group keys, and how many messages each producer sends. The same draws give the same due
// times: on any machine, since no floating point decides, and in any number of shards, since each producer of a load
// has draws of its own.
type Draws struct {
	Seed   uint64        // of the plan
	Name   string        // tells the loads of a plan apart
	Warmup time.Duration // of the step
	Quotas []uint64      // of a count: the messages of each producer; nil without a count
	Skew   *Skew         // the shares of the destinations; nil for equal ones
	Keys   *Keys         // the groups of messages; nil for those of their variants
}

// arrivals are the due times of one producer's messages. In a random piece, messages are due where the integral of the
// rate reaches the sums of exponential variates, each over the producer's share: all producers together are a
// Poisson process of the whole rate. In an even piece, the producer has its share of the integral's whole numbers.
type arrivals struct {
	table        *timetable
	random       rand.PCG
	index, total int // of the producer, of producers
	skew         *Skew

	from  wide // the integral from which on the next message may be due
	piece int  // that of the present message
	// due is when the present message is due, and last when the one before it was.
	due, last time.Duration
	drawn     uint64 // messages, the present one included; 0 before the first call of next
	// warm are the messages before the present one that were due in the warm-up.
	warm   uint64
	warmup time.Duration
}

// arrivals returns the arrivals of a producer; nil if they are even.
func (d *Draws) arrivals(s *Schedule, index, total int) *arrivals {
	if !s.Random() {
		return nil
	}
	a := &arrivals{
		table: s.table, index: index, total: total, skew: d.Skew, due: never, warmup: d.Warmup,
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", d.Seed, index, d.Name))
	a.random.Seed(binary.BigEndian.Uint64(key[:8]), binary.BigEndian.Uint64(key[8:]))
	return a
}

// next goes on to the next message and returns when it is due.
func (a *arrivals) next() time.Duration {
	if a.due < a.warmup {
		a.warm++
	}
	a.last, a.due = a.due, never
	a.drawn++
	t := a.table
	var x wide     // where the next message is due, if it is in the present piece
	drawn := false // by a variate, which goes on to the next piece if that is random, too
	for ; a.piece < len(t.pieces); a.piece++ {
		p := &t.pieces[a.piece]
		if a.from.less(p.base) {
			a.from = p.base
		}
		switch {
		case !p.random:
			x, drawn = a.nextWhole(), false
		case !drawn:
			x, drawn = a.from.plus(a.variate()), true
		}
		if !t.inPiece(a.piece, x) {
			continue
		}
		a.from, a.due = x, p.dueTime(x)
		if !p.random {
			a.from = x.plus(wide{lo: 1})
		}
		break
	}
	return a.due
}

// inPiece reports whether an integral that is not below those of a piece is one of them.
func (t *timetable) inPiece(i int, x wide) bool {
	if i+1 < len(t.pieces) {
		return x.less(t.pieces[i+1].base)
	}
	return t.end == 0 || x.less(t.total)
}

// nextWhole returns the next whole number of the integral that belongs to the producer.
func (a *arrivals) nextWhole() wide {
	own := a.skew.Share(a.from.messages(), a.index, a.total)
	return product(a.skew.place(own, a.index, a.total), wholeMessage)
}

// variate returns an exponential variate over the producer's share, as an integral.
func (a *arrivals) variate() wide {
	whole, fraction := exponential(&a.random)
	total := uint64(a.total)                             //nolint:gosec // not negative
	part := product(fraction, wholeMessage).times(total) // the fraction is in units of 2^-64
	x := product(whole*total, wholeMessage).plus(wide{part.hi, part.mid})
	if s := a.skew; s != nil {
		x, _ = x.times(s.whole).over(s.shares[a.index%len(s.shares)] * uint64(len(s.shares)))
	}
	return x
}

// exponential returns an exponential variate of mean 1 as whole + fraction / 2^64, by von Neumann's method: it only
// compares uniform numbers. The fraction is the first number of a falling run of odd length; runs of even length before
// it count as 1 each.
func exponential(random *rand.PCG) (whole, fraction uint64) {
	for ; ; whole++ {
		fraction = random.Uint64()
		odd, last := true, fraction
		for next := random.Uint64(); next < last; next = random.Uint64() {
			odd, last = !odd, next
		}
		if odd {
			return whole, fraction
		}
	}
}

// limit returns the number below which the producer sends its messages.
func (l *Load) limit() uint64 {
	var quota uint64
	switch {
	case l.Count == 0:
		return math.MaxUint64
	case l.Draws.Quotas != nil:
		quota = l.Draws.Quotas[l.Index]
	default:
		quota = l.Draws.Skew.Share(l.Count, l.Index, l.Total)
	}
	return uint64(l.Index) + quota*uint64(l.Total) //nolint:gosec // not negative
}

// maxCounted is the highest count whose messages are drawn before the load begins, in about a second. Of more, each
// producer sends its share, which is nearly what it would draw.
const maxCounted = 5_000_000

// DrawQuotas sets the quotas of a load: how many of its first count messages are due to each producer.
func (d *Draws) DrawQuotas(s Schedule, total int, count uint64) {
	if d.Quotas = nil; count == 0 || !s.Random() {
		return
	}
	d.Quotas = make([]uint64, total)
	shares := d.Skew.Count(count)
	var next soonest
	for i := range d.Quotas {
		if count > maxCounted {
			d.Quotas[i] = shares.Share(count, i, total)
			continue
		}
		next = append(next, d.arrivals(&s, i, total))
		next[i].next()
	}
	if next == nil {
		return
	}
	heap.Init(next)
	left := count
	for ; left > 0 && next[0].due < never; left-- {
		d.Quotas[next[0].index]++
		next[0].next()
		heap.Fix(next, 0)
	}
	for i := range d.Quotas {
		if left > 0 { // the schedule ends before the count
			d.Quotas[i] += count
		}
	}
}

// soonest is a heap of producers by the times at which their next messages are due.
type soonest []*arrivals

func (l soonest) Len() int { return len(l) }

func (l soonest) Less(i, j int) bool {
	return l[i].due < l[j].due || l[i].due == l[j].due && l[i].index < l[j].index
}

func (l soonest) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

func (l soonest) Push(any) { panic("of a fixed length") }

func (l soonest) Pop() any { panic("of a fixed length") }

// Drawn returns how many of the producer's messages were due before t, from the start of the load, how many of these in
// the warm-up, and when the last message begun was due. The arrivals are random, and Run has returned. Of the messages
// not sent it draws most, and estimates the number of those beyond.
func (p *Producer) Drawn(t time.Duration, most int) (all, warm uint64, last time.Duration) {
	if p.arrivals == nil {
		return 0, 0, 0
	}
	return p.arrivals.until(t, most, &p.load.Schedule)
}

// Drawn is [Producer.Drawn] of a producer that has not returned from Run.
func (d *Draws) Drawn(s Schedule, index, total int, t time.Duration, most int) (all, warm uint64, last time.Duration) {
	a := d.arrivals(&s, index, total)
	a.next()
	return a.until(t, most, &s)
}

func (a arrivals) until(t time.Duration, most int, s *Schedule) (all, warm uint64, last time.Duration) {
	if a.drawn > 1 {
		last = a.last
	}
	for ; a.due < t && most > 0; most-- {
		a.next()
	}
	weight := 1 / float64(a.total)
	if a.skew != nil {
		weight = a.skew.Weight(a.index)
	}
	expect := func(to time.Duration) uint64 {
		return uint64(s.Between(a.due, to) * max(0, to-a.due).Seconds() * weight)
	}
	return a.drawn - 1 + expect(t), a.warm + expect(min(t, a.warmup)), last
}

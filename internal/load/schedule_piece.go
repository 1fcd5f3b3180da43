package load

import (
	"math"
	"math/bits"
	"time"
)

// piece is a period in which the rate is constant or changes linearly. Its formulas are in integers:
//
//   - rates are in billionths of a message per second, at most 1e18;
//   - the integral of the rate is in units of 1/2e18 of a message. A rate of r adds 2r units per nanosecond, and a ramp
//     of a whole number of nanoseconds adds a whole number of units, so that the next piece begins with an exact
//     number. All messages of 292 years at the highest rate are below 2^125 units.
type piece struct {
	start    time.Duration
	length   uint64 // nanoseconds, below 2^63; 0 if the piece has no end
	from, to uint64 // the rates at its ends, equal or not
	base     wide   // the integral at its start
	random   bool   // its messages are a Poisson process
}

// wholeMessage is one message in units of the integral.
const wholeMessage = 2_000_000_000_000_000_000

// dueTime returns the time at which the integral exceeds x, which is one of the piece's.
func (p *piece) dueTime(x wide) time.Duration {
	x = x.minus(p.base) // the part that belongs to this piece
	var after uint64
	switch {
	case p.from != p.to:
		after = p.solve(x)
	case x.hi >= 2*p.from:
		return never
	default:
		after, _ = bits.Div64(x.hi, x.lo, 2*p.from)
	}
	if after >= uint64(never-p.start) {
		return never
	}
	return p.start + time.Duration(after)
}

// integral returns the integral at a time that is not before the start, rounded up to a unit. It ends with the piece.
func (p *piece) integral(at time.Duration) wide {
	s := uint64(at - p.start)
	if p.length > 0 {
		s = min(s, p.length)
	}
	c := p.base.plus(product(2*p.from, s))
	switch {
	case p.to > p.from: // + (to-from) s² / length, rounded up
		q, rest := product(p.to-p.from, s).times(s).over(p.length)
		if rest > 0 {
			q = q.plus(wide{lo: 1})
		}
		c = c.plus(q)
	case p.to < p.from:
		q, _ := product(p.from-p.to, s).times(s).over(p.length)
		c = c.minus(q)
	}
	return c
}

// solve returns the nanosecond of a ramp, from its start, in which the integral from its start exceeds x: the largest s
// with
//
//	2 from s + (to-from) s² / length <= x
//
// Floating point guesses s, mostly right; integers decide.
func (p *piece) solve(x wide) uint64 {
	limit := x.times(p.length)
	low, high := uint64(0), p.length // below(low) and not below(high)
	s := p.guess(x)
	if s > 0 && p.below(s-1, limit) {
		low = s - 1
	}
	if s+2 < high && !p.below(s+2, limit) {
		high = s + 2
	}
	for high-low > 1 {
		if s = low + (high-low)/2; p.below(s, limit) {
			low = s
		} else {
			high = s
		}
	}
	return low
}

// below reports whether s is not beyond the nanosecond that solve looks for: 2 from length s + (to-from) s² <= limit.
// The left side is below 2^189.
func (p *piece) below(s uint64, limit wider) bool {
	f := product(2*p.from, p.length)
	if p.to > p.from {
		f = f.plus(product(p.to-p.from, s))
	} else {
		f = f.minus(product(p.from-p.to, s))
	}
	return !limit.less(f.times(s))
}

// guess solves the quadratic equation from the end of the ramp with the lower rate, where no difference of nearly equal
// numbers spoils it: for ramps below 13 days it is off by a nanosecond at most.
func (p *piece) guess(x wide) uint64 {
	root := func(low, high uint64, x float64) uint64 {
		l, h := float64(low), float64(high)
		s := x / (l + math.Sqrt(l*l+(h-l)*x/float64(p.length)))
		if !(s > 0) { // 0/0 at the very start of a ramp from 0
			return 0
		}
		return min(uint64(s), p.length-1)
	}
	if p.to > p.from {
		return root(p.from, p.to, x.float())
	}
	left := product(p.from+p.to, p.length).minus(x)
	return p.length - 1 - root(p.to, p.from, left.float())
}

// wide is an unsigned number of 128 bits.
type wide struct{ hi, lo uint64 }

// wider is an unsigned number of 192 bits.
type wider struct{ hi, mid, lo uint64 }

func product(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

func (a wide) plus(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return wide{hi, lo}
}

func (a wide) minus(b wide) wide {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return wide{hi, lo}
}

func (a wide) times(b uint64) wider {
	mid, lo := bits.Mul64(a.lo, b)
	hi, more := bits.Mul64(a.hi, b)
	mid, carry := bits.Add64(mid, more, 0)
	return wider{hi + carry, mid, lo}
}

func (a wide) less(b wide) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a wide) float() float64 { return float64(a.hi)*(1<<64) + float64(a.lo) }

// messages returns an integral in messages, rounded up: so many have been due.
func (a wide) messages() uint64 {
	n, rest := bits.Div64(a.hi, a.lo, wholeMessage)
	if rest > 0 {
		n++
	}
	return n
}

// over divides; the quotient must be below 2^128.
func (a wider) over(d uint64) (q wide, rest uint64) {
	q.hi, rest = bits.Div64(a.hi, a.mid, d)
	q.lo, rest = bits.Div64(rest, a.lo, d)
	return q, rest
}

func (a wider) less(b wider) bool {
	_, borrow := bits.Sub64(a.lo, b.lo, 0)
	_, borrow = bits.Sub64(a.mid, b.mid, borrow)
	_, borrow = bits.Sub64(a.hi, b.hi, borrow)
	return borrow > 0
}

package transport

import "math"

// Ring is a FIFO in a circular array; values can also be taken from its middle. The zero value of T marks a taken
// value. Positions from First on stay valid until Compact; Take may move First.
type Ring[T comparable] struct {
	items []T    // position p is at p modulo the length, a power of two
	First uint64 // position of the first value
	Next  uint64 // position of the next value to be pushed
	Live  int    // values not taken
}

const (
	minItems = 8
	// keptItems is the largest array that is kept whatever is in it: it is memory that is not accounted for.
	keptItems = 1 << 12
)

// At returns the value at a position from First to Next; it is zero if it was taken.
func (r *Ring[T]) At(pos uint64) *T { return &r.items[pos&uint64(len(r.items)-1)] }

// Push appends a value.
func (r *Ring[T]) Push(v T) {
	if r.Next-r.First == uint64(len(r.items)) {
		r.resize(max(minItems, 2*len(r.items)))
	}
	*r.At(r.Next) = v
	r.Next++
	r.Live++
}

// resize moves the values to an array of n, a sufficient power of two.
func (r *Ring[T]) resize(n int) {
	items := make([]T, n)
	for pos := r.First; pos != r.Next; pos++ {
		items[pos&uint64(n-1)] = *r.At(pos)
	}
	r.items = items
}

// Take removes and returns the value at a position from First to Next.
func (r *Ring[T]) Take(pos uint64) T {
	var zero T
	v := *r.At(pos)
	if v == zero {
		return v
	}
	*r.At(pos) = zero
	r.Live--
	for r.First != r.Next && *r.At(r.First) == zero {
		r.First++
	}
	switch used := r.Next - r.First; { // the end of a backlog
	case len(r.items) <= keptItems:
	case used == 0:
		r.items = nil
	case used < uint64(len(r.items)/8):
		r.resize(len(r.items) / 4)
	}
	return v
}

// Sparse reports that the next Push would enlarge the array although most values were taken: a value stays at its
// front.
func (r *Ring[T]) Sparse() bool {
	return r.Next-r.First == uint64(len(r.items)) && r.Live < len(r.items)/2
}

// Compact closes the gaps. Positions change, except for Next.
func (r *Ring[T]) Compact() {
	var zero T
	to := r.Next
	for pos := r.Next; pos != r.First; {
		pos--
		if v := *r.At(pos); v != zero {
			to--
			*r.At(pos) = zero
			*r.At(to) = v
		}
	}
	r.First = to
}

// Tracker holds values at fixed positions until they are removed. Long-lived values move to a map, so that the ring
// does not grow.
type Tracker[T comparable] struct {
	Ring[T]
	old map[uint64]T
}

// Add adds a value at Next.
func (t *Tracker[T]) Add(v T) {
	if t.Sparse() {
		if t.old == nil {
			t.old = map[uint64]T{}
		}
		for t.Live > 0 {
			pos := t.First // where a value is
			t.old[pos] = t.Take(pos)
		}
	}
	t.Push(v)
}

// Len returns the number of values.
func (t *Tracker[T]) Len() int { return t.Live + len(t.old) }

// Get returns the value at a position, or zero.
func (t *Tracker[T]) Get(pos uint64) (v T) {
	switch {
	case pos < t.First:
		v = t.old[pos]
	case pos < t.Next:
		v = *t.At(pos)
	}
	return v
}

// Remove removes and returns the value at a position, or zero.
func (t *Tracker[T]) Remove(pos uint64) (v T) {
	switch {
	case pos < t.First:
		v = t.old[pos]
		delete(t.old, pos)
	case pos < t.Next:
		v = t.Take(pos)
	}
	return v
}

// Each calls f with the positions of the values from first to last, which f may remove: first the long-lived values in
// any order, then the others in order.
func (t *Tracker[T]) Each(first, last uint64, f func(pos uint64)) {
	if first < t.First {
		for pos := range t.old {
			if first <= pos && pos <= last {
				f(pos)
			}
		}
	}
	var zero T
	for pos := first; t.Live > 0; pos++ {
		if pos = max(pos, t.First); pos > last || pos >= t.Next { // f may move First
			break
		}
		if *t.At(pos) != zero {
			f(pos)
		}
	}
}

// EachSerial is Each for serial numbers (RFC 1982), the low 32 bits of positions. A full circle means all values; a
// range that ends before it begins, or begins behind the last value, means none.
func (t *Tracker[T]) EachSerial(first, last uint32, f func(pos uint64)) {
	before, width := uint32(t.Next)-first, last-first //nolint:gosec // serial numbers
	switch {
	case width == math.MaxUint32:
		t.Each(0, t.Next, f)
		return
	case width > 1<<31, before > 1<<31:
		return
	}
	from := t.Next - uint64(before)
	to := from + uint64(width)
	if from > t.Next { // before the first position
		from = 0
	}
	t.Each(from, to, f)
}

package mem

import "math/bits"

// ring is a FIFO that grows as needed and never shrinks. The zero value is empty.
type ring[T any] struct {
	buf  []T // its length is a power of two
	head int
	n    int
}

func (r *ring[T]) len() int { return r.n }

// at returns the i-th element from the head.
func (r *ring[T]) at(i int) *T { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

func (r *ring[T]) grow() {
	if r.n < len(r.buf) {
		return
	}
	bigger := make([]T, max(16, 2*len(r.buf)))
	for i := range r.n {
		bigger[i] = *r.at(i)
	}
	r.buf, r.head = bigger, 0
}

func (r *ring[T]) push(v *T) {
	r.grow()
	r.n++
	*r.at(r.n - 1) = *v
}

func (r *ring[T]) pushFront(v *T) {
	r.grow()
	r.head = (r.head - 1) & (len(r.buf) - 1)
	r.n++
	*r.at(0) = *v
}

// pop removes the head, which must exist.
func (r *ring[T]) pop() T {
	var zero T
	head := r.at(0)
	v := *head
	*head = zero
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return v
}

// shelf holds the messages of a queue: messages of higher priority come first, messages of equal priority in their
// order. The zero value is empty.
type shelf struct {
	levels [numPriorities]ring[item]
	used   uint16 // a bit for each non-empty level
	n      int
}

func (s *shelf) len() int { return s.n }

func (s *shelf) push(it *item) {
	s.levels[it.priority].push(it)
	s.used |= 1 << it.priority
	s.n++
}

func (s *shelf) pushFront(it *item) {
	s.levels[it.priority].pushFront(it)
	s.used |= 1 << it.priority
	s.n++
}

// pop removes the first message, which must exist.
func (s *shelf) pop() item {
	level := bits.Len16(s.used) - 1
	return s.popLevel(level)
}

func (s *shelf) popLevel(level int) item {
	it := s.levels[level].pop()
	if s.levels[level].len() == 0 {
		s.used &^= 1 << level
	}
	s.n--
	return it
}

// sift removes the messages for which take is true; the others keep their order.
func (s *shelf) sift(take func(*item) bool) {
	for level := numPriorities - 1; level >= 0; level-- {
		for range s.levels[level].len() {
			if it := s.popLevel(level); !take(&it) {
				s.push(&it)
			}
		}
	}
}

func (s *shelf) clear() { *s = shelf{} }

package mem

// ring is a FIFO that grows as needed and never shrinks. The zero value is empty.
type ring[T any] struct {
	buf  []T // its length is a power of two
	head int
	n    int
}

func (r *ring[T]) len() int { return r.n }

// at returns the i-th from the head.
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

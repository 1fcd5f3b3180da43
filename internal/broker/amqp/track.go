package amqp

// unsettled are the unsettled deliveries of a session by their position: the delivery-id is its low 32 bits, a serial
// number (RFC 1982).
type unsettled struct {
	ring  []delivered // position n is at n modulo its length, a power of two
	first uint64      // position in the ring
	next  uint64      // position of the next delivery
	live  int         // unsettled deliveries in the ring
	old   map[uint64]delivered
}

// delivered is a sent delivery.
type delivered struct {
	link *outLink // nil: settled
	id   uint64   // of the consumer
}

// add adds a delivery and returns its delivery-id.
func (u *unsettled) add(d delivered) uint32 {
	if u.next-u.first == uint64(len(u.ring)) {
		u.grow()
	}
	number := uint32(u.next) //nolint:gosec // serial
	u.ring[u.next&uint64(len(u.ring)-1)] = d
	u.next++
	u.live++
	return number
}

// skip returns the delivery-id of a presettled delivery.
func (u *unsettled) skip() uint32 {
	number := uint32(u.next) //nolint:gosec // serial
	if u.live == 0 {
		u.next++
		u.first = u.next
		return number
	}
	u.add(delivered{})
	u.live--
	return number
}

// grow makes room in the ring. If most of it is settled, the few unsettled deliveries at its front move out.
func (u *unsettled) grow() {
	if u.live < len(u.ring)/2 {
		if u.old == nil {
			u.old = map[uint64]delivered{}
		}
		for n := u.first; n != u.next; n++ {
			if d := u.at(n); d.link != nil {
				u.old[n] = *d
				*d = delivered{}
			}
		}
		u.first, u.live = u.next, 0
		return
	}
	ring := make([]delivered, max(64, 2*len(u.ring)))
	for n := u.first; n != u.next; n++ {
		ring[n&uint64(len(ring)-1)] = *u.at(n)
	}
	u.ring = ring
}

func (u *unsettled) at(n uint64) *delivered { return &u.ring[n&uint64(len(u.ring)-1)] }

// get returns the delivery at a position, without a link if it is settled.
func (u *unsettled) get(n uint64) delivered {
	if n < u.first {
		return u.old[n]
	}
	if n >= u.next {
		return delivered{}
	}
	return *u.at(n)
}

// remove forgets a delivery.
func (u *unsettled) remove(n uint64) {
	if n < u.first {
		delete(u.old, n)
		return
	}
	if d := u.at(n); d.link != nil {
		*d = delivered{}
		u.live--
	}
	for u.first != u.next && u.at(u.first).link == nil {
		u.first++
	}
}

// each calls f with the positions of the unsettled deliveries from first to last, in order within the ring; f may remove
// them. Its cost does not depend on the size of the range outside of the ring.
func (u *unsettled) each(first, last uint32, f func(n uint64)) {
	if last-first > 1<<31 { // the end is before the beginning
		return
	}
	next := uint32(u.next) //nolint:gosec // serial
	from := u.next - uint64(next-first)
	if next-first > 1<<31 { // in the future
		return
	}
	to := from + uint64(last-first)
	if from > u.next { // before the first position
		from = 0
	}
	if from < u.first && len(u.old) > 0 {
		for n := range u.old {
			if n >= from && n <= to {
				f(n)
			}
		}
	}
	for n := max(from, u.first); n <= to && n < u.next; n++ {
		if u.at(n).link != nil {
			f(n)
		}
	}
}

// forget removes all deliveries of a link.
func (u *unsettled) forget(l *outLink) {
	for n, d := range u.old {
		if d.link == l {
			delete(u.old, n)
		}
	}
	for n := u.first; n != u.next; n++ {
		if d := u.at(n); d.link == l {
			*d = delivered{}
			u.live--
		}
	}
	for u.first != u.next && u.at(u.first).link == nil {
		u.first++
	}
}

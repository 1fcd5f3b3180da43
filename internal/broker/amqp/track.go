package amqp

import "github.com/perfmq/perfmq/internal/broker/ring"

// unsettled are the unsettled deliveries of a session by their position: the delivery-id is its low 32 bits, a serial
// number (RFC 1982).
type unsettled struct{ ring.Tracker[delivered] }

// delivered is a sent delivery.
type delivered struct {
	link *outLink // nil: settled
	id   uint64   // of the consumer
}

// add adds a delivery and returns its delivery-id.
func (u *unsettled) add(d delivered) uint32 {
	u.Add(d)
	return uint32(u.Next - 1) //nolint:gosec // serial
}

// skip returns the delivery-id of a presettled delivery.
func (u *unsettled) skip() uint32 {
	u.Skip()
	return uint32(u.Next - 1) //nolint:gosec // serial
}

// each calls f with the positions of the unsettled deliveries from first to last; f may remove them. The size of
// the range has no influence on its cost.
func (u *unsettled) each(first, last uint32, f func(n uint64)) {
	next := uint32(u.Next)                        //nolint:gosec // serial
	if last-first > 1<<31 || next-first > 1<<31 { // an end before the beginning, or in the future
		return
	}
	from := u.Next - uint64(next-first)
	to := from + uint64(last-first)
	if from > u.Next { // before the first position
		from = 0
	}
	u.Each(from, to, f)
}

// forget removes all deliveries of a link.
func (u *unsettled) forget(l *outLink) {
	u.Each(0, u.Next, func(n uint64) {
		if u.Get(n).link == l {
			u.Remove(n)
		}
	})
}

package amqp

import "github.com/perfmq/perfmq/internal/broker/store"

// delivered is a sent delivery.
type delivered struct {
	link *outLink // nil: settled
	id   uint64   // of the consumer
}

func (d *delivered) settle(o store.Outcome) { d.link.consumer.Settle(d.id, o) }

// eachUnsettled calls f with the positions of the unsettled deliveries from first to last; f may remove them. The
// delivery-id is the low 32 bits of the position, a serial number (RFC 1982). The size of the range has no influence on
// its cost.
func (s *session) eachUnsettled(first, last uint32, f func(n uint64)) {
	u := &s.unsettled
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
func (s *session) forget(l *outLink) {
	s.unsettled.Each(0, s.unsettled.Next, func(n uint64) {
		if s.unsettled.Get(n).link == l {
			s.unsettled.Remove(n)
		}
	})
}

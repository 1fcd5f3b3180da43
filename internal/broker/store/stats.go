package store

import (
	"cmp"
	"slices"
	"strings"
)

// QueueStats are the true counts of one queue or subscription since it was made.
type QueueStats struct {
	Subscription string `json:"subscription,omitempty"` // its name; empty for a queue, and for subscriptions without one
	Consumers    int    `json:"consumers"`
	Depth        int64  `json:"depth"` // messages stored and not settled, what consumers hold included
	Bytes        int64  `json:"bytes"`
	Stored       uint64 `json:"stored"`
	Delivered    uint64 `json:"delivered"`
	Redelivered  uint64 `json:"redelivered"` // part of Delivered
	Settled      uint64 `json:"settled"`     // accepted by consumers
	Returned     uint64 `json:"returned"`    // given back by consumers, or left by them when they closed
	Rejected     uint64 `json:"rejected"`    // by consumers
	Expired      uint64 `json:"expired"`
}

// DestinationStats are the true counts of one destination since it was made.
type DestinationStats struct {
	Address  string       `json:"address"`
	Sent     uint64       `json:"sent"`     // messages that were taken, those included that faults made away with
	Refused  uint64       `json:"refused"`  // for lack of room
	Unrouted uint64       `json:"unrouted"` // sent to a topic that nobody had subscribed to
	Queues   []QueueStats `json:"queues"`
}

// Stats returns the counts of all destinations, in the order of their names. They are exact when nothing is going on.
func (s *Store) Stats() []DestinationStats {
	var list []DestinationStats
	s.each(func(d *Destination) { list = append(list, d.Stats()) })
	slices.SortFunc(list, func(a, b DestinationStats) int { return strings.Compare(a.Address, b.Address) })
	return list
}

// Stats returns the counts of one destination.
func (d *Destination) Stats() DestinationStats {
	s := DestinationStats{
		Address: d.addr.String(), Sent: d.sent.Load(), Refused: d.refused.Load(), Unrouted: d.nobody.Load(),
	}
	for _, q := range d.queues() {
		s.Queues = append(s.Queues, q.Stats())
	}
	slices.SortFunc(s.Queues, func(a, b QueueStats) int { return cmp.Compare(a.Subscription, b.Subscription) })
	return s
}

// Stats returns the counts of one queue.
func (q *Queue) Stats() QueueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return QueueStats{
		Subscription: q.name, Consumers: len(q.consumers), Depth: q.size.Load(), Bytes: q.bytes.Load(), Stored: q.stored,
		Delivered: q.delivered, Redelivered: q.redelivered, Settled: q.settledAll.Load(), Returned: q.returned,
		Rejected: q.rejected, Expired: q.expired,
	}
}

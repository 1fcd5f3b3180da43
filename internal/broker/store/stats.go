package store

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// QueueStats are the exact counts of a queue or subscription since its creation.
type QueueStats struct {
	Subscription string `json:"subscription,omitempty"` // its name; empty for queues and unnamed subscriptions

	Consumers   int    `json:"consumers"`
	Depth       int64  `json:"depth"` // messages stored and not settled, including unsettled deliveries
	Bytes       int64  `json:"bytes"`
	Stored      uint64 `json:"stored"`
	Delivered   uint64 `json:"delivered"`
	Redelivered uint64 `json:"redelivered"` // part of Delivered
	Settled     uint64 `json:"settled"`     // accepted by consumers
	Returned    uint64 `json:"returned"`    // released by consumers, or unsettled when they closed
	Rejected    uint64 `json:"rejected"`    // by consumers
	Expired     uint64 `json:"expired"`
}

// DestinationStats are the exact counts of one destination since its creation.
type DestinationStats struct {
	Address  string       `json:"address"`
	Sent     uint64       `json:"sent"`     // accepted messages, including lost ones
	Refused  uint64       `json:"refused"`  // for lack of room
	Unrouted uint64       `json:"unrouted"` // sent to a topic without subscriptions
	Queues   []QueueStats `json:"queues"`
}

// Totals are the counts of all destinations together.
type Totals struct {
	Destinations int    `json:"destinations"`
	Queues       int    `json:"queues"` // and subscriptions
	Sent         uint64 `json:"sent"`
	Refused      uint64 `json:"refused"`
	Unrouted     uint64 `json:"unrouted"`
	QueueStats
}

// Stats returns the counts of all destinations, in the order of their names. They are exact on an idle broker.
func (s *Store) Stats() []DestinationStats {
	list, _, _ := s.Page(math.MaxInt)
	return list
}

// Page returns the counts of the first limit destinations, in the order of their names, the totals of all destinations,
// and the number of the others.
func (s *Store) Page(limit int) (page []DestinationStats, total Totals, more int) {
	var list []*Destination
	s.each(func(d *Destination) {
		total.add(d)
		list = append(list, d)
	})
	slices.SortFunc(list, func(a, b *Destination) int {
		return cmp.Or(cmp.Compare(a.addr.Kind, b.addr.Kind), strings.Compare(a.addr.Name, b.addr.Name))
	})
	n := min(limit, len(list))
	page = make([]DestinationStats, 0, n)
	for _, d := range list[:n] {
		page = append(page, d.Stats())
	}
	return page, total, len(list) - n
}

func (t *Totals) add(d *Destination) {
	t.Destinations++
	t.Sent += d.sent.Load()
	t.Refused += d.refused.Load()
	t.Unrouted += d.unrouted.Load()
	for _, q := range d.queues() {
		s := q.Stats()
		t.Queues++
		t.Consumers += s.Consumers
		t.Depth += s.Depth
		t.Bytes += s.Bytes
		t.Stored += s.Stored
		t.Delivered += s.Delivered
		t.Redelivered += s.Redelivered
		t.Settled += s.Settled
		t.Returned += s.Returned
		t.Rejected += s.Rejected
		t.Expired += s.Expired
	}
}

// Stats returns the counts of one destination.
func (d *Destination) Stats() DestinationStats {
	s := DestinationStats{
		Address: d.addr.String(), Sent: d.sent.Load(), Refused: d.refused.Load(), Unrouted: d.unrouted.Load(),
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
	s := q.counts
	s.Subscription = q.name
	s.Consumers, s.Depth, s.Bytes, s.Settled = len(q.consumers), q.size.Load(), q.bytes.Load(), q.accepted.Load()
	return s
}

package store

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// QueueStats are the true counts of one queue or subscription since it was made.
type QueueStats struct {
	Subscription string `json:"subscription,omitempty"` // its name; empty for a queue, and for subscriptions without one
	Consumers    int    `json:"consumers"`
	Depth        int64  `json:"depth"` // messages stored and not settled, including those that consumers hold
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
	Unrouted uint64       `json:"unrouted"` // sent to a topic without a subscriber
	Queues   []QueueStats `json:"queues"`
}

// Counts returns the counts that a tester compares with its own. For a topic, messages added are all that were
// accepted for it, whatever the subscriptions.
func (s *DestinationStats) Counts() driver.DestinationCount {
	n := driver.NoDestination()
	for i := range s.Queues {
		q := &s.Queues[i]
		n.Depth.N += uint64(max(0, q.Depth)) //nolint:gosec // not below 0
		n.Added.N += q.Stored
		n.Acknowledged.N += q.Settled
		n.Consumers.N += uint64(max(0, q.Consumers)) //nolint:gosec // not below 0
	}
	if strings.HasPrefix(s.Address, Address{Kind: KindTopic}.String()) {
		n.Added, n.Acknowledged = driver.Counted(s.Sent), driver.Count{} // subscriptions take their counts with them
	}
	return n
}

// Totals are the counts of all destinations together.
type Totals struct {
	Destinations int    `json:"destinations"`
	Queues       int    `json:"queues"` // and subscriptions
	Consumers    int    `json:"consumers"`
	Depth        int64  `json:"depth"`
	Bytes        int64  `json:"bytes"`
	Sent         uint64 `json:"sent"`
	Refused      uint64 `json:"refused"`
	Unrouted     uint64 `json:"unrouted"`
	Stored       uint64 `json:"stored"`
	Delivered    uint64 `json:"delivered"`
	Redelivered  uint64 `json:"redelivered"`
	Settled      uint64 `json:"settled"`
	Returned     uint64 `json:"returned"`
	Rejected     uint64 `json:"rejected"`
	Expired      uint64 `json:"expired"`
}

// Stats returns the counts of all destinations, in the order of their names. They are exact when nothing is going on.
func (s *Store) Stats() []DestinationStats {
	list, _, _ := s.Page("", math.MaxInt)
	return list
}

// Page returns the counts of the first limit destinations after one, in the order of their names, and the totals of all
// destinations. An empty name is before all others. more tells how many come after them.
func (s *Store) Page(after string, limit int) (page []DestinationStats, total Totals, more int) {
	var list []*Destination
	s.each(func(d *Destination) {
		total.add(d)
		if d.addr.String() > after {
			list = append(list, d)
		}
	})
	slices.SortFunc(list, func(a, b *Destination) int { return a.addr.compare(b.addr) })
	n := min(limit, len(list))
	page = make([]DestinationStats, 0, n)
	for _, d := range list[:n] {
		page = append(page, d.Stats())
	}
	return page, total, len(list) - n
}

// compare orders addresses as their texts are ordered.
func (a Address) compare(b Address) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

func (t *Totals) add(d *Destination) {
	t.Destinations++
	t.Sent += d.sent.Load()
	t.Refused += d.refused.Load()
	t.Unrouted += d.nobody.Load()
	for _, x := range *d.subs.Load() {
		q, ok := x.(*Queue)
		if !ok {
			continue
		}
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

package stats

import "time"

// Arrival are the messages that came from another shard in an interval.
type Arrival struct {
	Shard    int    // from 1
	Messages uint64 // with a time of sending
	// the shortest transfer time, by the clocks of the two processes: below zero if they differ by more than it took
	Fastest time.Duration
}

// Arrivals lets the recorder keep the messages of that many shards apart. Call it before the first message.
func (r *ConsumerRecorder) Arrivals(shards int) { r.from = make([]Arrival, shards) }

// cameFrom counts a message of another shard. The lock is held.
func (r *ConsumerRecorder) cameFrom(m *Receipt) {
	a := &r.from[m.Shard-1]
	if a.Messages == 0 || m.Transfer < a.Fastest {
		a.Fastest = m.Transfer
	}
	a.Messages++
}

// moveArrivals adds the messages of other shards since the last call to to, which holds the sums of other recorders in
// the order of the shards.
func (r *ConsumerRecorder) moveArrivals(to []Arrival) []Arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to == nil && len(r.from) > 0 {
		to = make([]Arrival, len(r.from))
	}
	for i := range r.from {
		to[i].join(&r.from[i])
		r.from[i] = Arrival{}
	}
	return to
}

func (a *Arrival) join(o *Arrival) {
	if o.Messages == 0 {
		return
	}
	if a.Messages == 0 || o.Fastest < a.Fastest {
		a.Fastest = o.Fastest
	}
	a.Messages += o.Messages
}

// arrivals returns the messages that came from other shards since the last call; shards without any are left out.
func (c *Collector) arrivals() (list []Arrival) {
	var sums []Arrival
	for _, r := range c.consumers {
		sums = r.moveArrivals(sums)
	}
	for i := range sums {
		if sums[i].Messages > 0 {
			sums[i].Shard = i + 1
			list = append(list, sums[i])
		}
	}
	return list
}

// joinArrivals returns the arrivals of two intervals together.
func joinArrivals(a, b []Arrival) (list []Arrival) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].Shard < b[0].Shard:
			list, a = append(list, a[0]), a[1:]
		case a[0].Shard > b[0].Shard:
			list, b = append(list, b[0]), b[1:]
		default:
			sum := a[0]
			sum.join(&b[0])
			list, a, b = append(list, sum), a[1:], b[1:]
		}
	}
	return append(append(list, a...), b...)
}

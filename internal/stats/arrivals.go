package stats

import (
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

// SetShards lets the recorder keep the messages of that many shards apart. Call it before the first message.
func (r *ConsumerRecorder) SetShards(shards int) {
	r.from = make([]result.Arrival, shards)
	for i := range r.from {
		r.from[i].Shard = i + 1
	}
}

// arrive adds messages of another shard, with the transfer time of the fastest by the clocks of both processes: below
// zero if the clocks differ by more than that.
func arrive(a *result.Arrival, messages uint64, fastest result.Difference) {
	if messages > 0 && (a.Messages == 0 || fastest < a.Fastest) {
		a.Fastest = fastest
	}
	a.Messages += messages
}

// joinArrivals returns the arrivals of two intervals, or consumers, together. Lists have all shards, or are empty.
func joinArrivals(a, b []result.Arrival) []result.Arrival {
	if len(a) == 0 {
		return slices.Clone(b)
	}
	sum := slices.Clone(a)
	for i := range b {
		arrive(&sum[i], b[i].Messages, b[i].Fastest)
	}
	return sum
}

// arrivals returns the messages that came from other shards since the last call.
func (c *Collector) arrivals() (list []result.Arrival) {
	for _, r := range c.consumers {
		r.mu.Lock()
		list = joinArrivals(list, r.from)
		for i := range r.from {
			r.from[i] = result.Arrival{Shard: i + 1}
		}
		r.mu.Unlock()
	}
	return list
}

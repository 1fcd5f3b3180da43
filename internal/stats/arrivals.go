package stats

import "github.com/perfmq/perfmq/pkg/result"

// SetShards lets the recorder keep the messages of that many shards apart. Call it before the first message.
func (r *ConsumerRecorder) SetShards(shards int) {
	r.from = make([]result.Arrival, shards)
}

// arrive adds messages of another shard, with the transfer time of the fastest by the clocks of both processes: below
// zero if the clocks differ by more than that.
func arrive(a *result.Arrival, messages uint64, fastest result.Difference) {
	if messages > 0 && (a.Messages == 0 || fastest < a.Fastest) {
		a.Fastest = fastest
	}
	a.Messages += messages
}

// arrivals returns the messages that came from other shards since the last call.
func (c *Collector) arrivals() (list []result.Arrival) {
	var sum []result.Arrival
	for _, r := range c.consumers {
		r.mu.Lock()
		if sum == nil {
			sum = make([]result.Arrival, len(r.from))
		}
		for i, a := range r.from {
			arrive(&sum[i], a.Messages, a.Fastest)
			r.from[i] = result.Arrival{}
		}
		r.mu.Unlock()
	}
	for i, a := range sum {
		if a.Shard = i + 1; a.Messages > 0 {
			list = append(list, a)
		}
	}
	return list
}

package stats

import "github.com/perfmq/perfmq/pkg/result"

// HostCounts returns the messages sent, completed and unconfirmed so far. It leaves out a message that the driver has
// not taken yet: it may leave by another connection than the present one.
func (r *ProducerRecorder) HostCounts() (n Counters) {
	n[result.Completed] = r.Completed()
	n[result.Unconfirmed] = r.Count(result.Unconfirmed)
	for part := range parts {
		n[result.Sent] += r.handed[part].Load()
	}
	return n
}

// HostCounts returns the messages so far.
func (r *ConsumerRecorder) HostCounts() Counters { return Counters{result.Received: r.Total()} }

package broker

import (
	"context"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Inspect implements [driver.Inspector] with the exact counts of the store. For a topic, messages added are all
// accepted messages, whatever the subscriptions: these take their counts with them.
func (b *Broker) Inspect(
	_ context.Context, destinations []driver.Destination,
) (list []driver.DestinationCount, err error) {
	for _, dest := range destinations {
		n := driver.NoDestination()
		if d := b.store.Find(dest); d != nil {
			s := d.Stats()
			for i := range s.Queues {
				q := &s.Queues[i]
				n.Depth.N += uint64(max(0, q.Depth)) //nolint:gosec // not below 0
				n.Added.N += q.Stored
				n.Acknowledged.N += q.Settled
				n.Consumers.N += uint64(max(0, q.Consumers)) //nolint:gosec // not below 0
			}
			if dest.Kind == driver.Topic {
				n.Added, n.Acknowledged = driver.Counted(s.Sent), driver.Count{}
			}
		}
		list = append(list, n)
	}
	return list, nil
}

var _ driver.Inspector = (*Broker)(nil)

package broker

import (
	"context"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Inspect implements [driver.Inspector] with the exact counts of the store. For a topic, messages added are all
// accepted messages, whatever the subscriptions.
func (b *Broker) Inspect(
	_ context.Context, destinations []driver.Destination,
) (list []driver.DestinationCount, err error) {
	for _, dest := range destinations {
		n := driver.NoDestination()
		if d := b.store.Find(dest); d != nil {
			s := d.Stats()
			n = s.Counts()
		}
		list = append(list, n)
	}
	return list, nil
}

var _ driver.Inspector = (*Broker)(nil)

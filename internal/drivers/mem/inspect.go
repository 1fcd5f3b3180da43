package mem

import (
	"context"
	"fmt"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Inspect implements [driver.Inspector].
func (d *memDriver) Inspect(
	ctx context.Context, destinations []driver.Destination,
) (list []driver.DestinationCount, err error) {
	for _, dest := range destinations {
		n := driver.NoDestination()
		err = d.visit(ctx, "ask the broker for its counters", dest, func(found *destination) {
			n.Added.N, n.Acknowledged = found.added, driver.Count{}
			for _, q := range found.queues {
				n.Depth.N += q.depth()
				n.Consumers.N += uint64(len(q.members))
			}
		})
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// visit calls f for a destination, if it exists, with its lock, through a connection of its own.
func (d *memDriver) visit(ctx context.Context, op string, dest driver.Destination, f func(*destination)) error {
	c, err := d.dialAny(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	c.End(ctx)
	b := c.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if found := b.destinations[dest]; found != nil {
		found.mu.Lock()
		defer found.mu.Unlock()
		f(found)
	}
	return nil
}

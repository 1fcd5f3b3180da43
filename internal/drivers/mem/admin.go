package mem

import (
	"context"
	"fmt"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Depth implements [driver.Admin].
func (d *memDriver) Depth(ctx context.Context, dest driver.Destination, subscription string) (n uint64, err error) {
	err = d.visit(ctx, "count the messages of "+dest.String(), dest, func(found *destination) {
		for _, q := range found.queues {
			if subscription == "" || q.name == subscription {
				n += q.depth()
			}
		}
	})
	return n, err
}

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

// Purge implements [driver.Admin]. Messages already sent to consumers stay with them.
func (d *memDriver) Purge(ctx context.Context, dest driver.Destination) (n uint64, err error) {
	err = d.visit(ctx, "purge "+dest.String(), dest, func(found *destination) {
		for _, q := range found.queues {
			n += uint64(q.items.len()) //nolint:gosec // a length
			q.items.keep(0)
		}
		found.freed()
		found.stats.Purged += n
	})
	return n, err
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

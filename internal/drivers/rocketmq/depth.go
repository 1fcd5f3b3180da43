package rocketmq

import (
	"context"
	"slices"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// groupsOf returns the groups of a destination on one broker.
func (d *rocketDriver) groupsOf(
	ctx context.Context, conn *conn, topic string, dest driver.Destination,
) ([]membership, error) {
	cfg := &d.cfg
	if dest.Kind == driver.Queue || cfg.Options.Group != "" {
		return []membership{cfg.Options.membershipOf(&driver.ConsumerSpec{Destination: dest}, "")}, nil
	}
	var list wire.Groups
	err := conn.query(ctx, "list consumer groups", wire.ReqQueryTopicConsumeByWho, []string{"topic", topic}, nil,
		&list)
	if err != nil {
		return nil, err
	}
	var groups []membership
	queue := driver.ConsumerSpec{Destination: driver.Destination{Name: dest.Name}}
	queueGroup := cfg.Options.membershipOf(&queue, "").group
	for _, group := range slices.Compact(slices.Sorted(slices.Values(list.Groups))) {
		if group != queueGroup {
			groups = append(groups, membership{group: group, fromNext: true})
		}
	}
	return groups, nil
}

// Inspect implements [driver.Inspector]. Added is the sum of the next offsets of a topic's queues, Acknowledged the sum
// of a queue's group offsets in them, and Depth the difference, including messages to be delivered again; for a topic,
// the sum over all groups. Messages that wait for their delay are in neither.
func (d *rocketDriver) Inspect(
	ctx context.Context, destinations []driver.Destination,
) (list []driver.DestinationCount, err error) {
	ctx, cancel := d.opening(ctx)
	defer cancel()
	for _, dest := range destinations {
		n, err := d.inspect(ctx, dest)
		if err != nil {
			d.asking.close()
			clear(d.counted)
			return nil, wrap("ask for counters", err)
		}
		list = append(list, n)
	}
	return list, nil
}

func (d *rocketDriver) inspect(ctx context.Context, dest driver.Destination) (n driver.DestinationCount, err error) {
	topic := dest.Name
	r := d.counted[topic]
	if r == nil {
		r, err = d.asking.lookUp(ctx, topic)
		if driver.ClassOf(err) == driver.ClassNotFound {
			return driver.NoDestination(), nil
		}
		if err != nil {
			return n, err
		}
		d.counted[topic] = r
	}
	n.Added, n.Depth = driver.Counted(0), driver.Counted(0)
	// Groups with a filter have names of their own, and skip messages that they exclude.
	_, filtered := d.filtered.Load(dest)
	acknowledges := dest.Kind == driver.Queue && !filtered
	if acknowledges {
		n.Acknowledged = driver.Counted(0)
	}
	for _, b := range r.brokers {
		conn, err := d.asking.connect(ctx, b.addr, new(driver.Connection))
		if err != nil {
			return n, err
		}
		for number := range max(b.read, b.write) {
			end, err := conn.limitOffset(ctx, queueID{topic, b.name, number}, wire.ReqGetMaxOffset)
			if err != nil {
				return n, err
			}
			n.Added.N += uint64(max(0, end)) //nolint:gosec // not below 0
		}
		groups, err := d.groupsOf(ctx, conn, topic, dest)
		if err != nil {
			return n, err
		}
		for _, m := range groups {
			for number := range b.read + 1 {
				id, retry := queueID{topic, b.name, number}, number == b.read
				if retry {
					id = queueID{wire.RetryPrefix + m.group, b.name, 0}
				}
				next, end, err := m.place(ctx, conn, id, retry)
				if err != nil {
					return n, err
				}
				n.Depth.N += uint64(max(0, end-next)) //nolint:gosec // not below 0
				if acknowledges && !retry {
					n.Acknowledged.N += uint64(max(0, next)) //nolint:gosec // not below 0
				}
			}
		}
	}
	return n, nil
}

// place asks where the group stands in a queue: it has not consumed the messages from offset next to end.
func (m *membership) place(ctx context.Context, conn *conn, id queueID, retry bool) (next, end int64, err error) {
	next, found, err := m.stands(ctx, conn, id, retry)
	switch {
	case retry && driver.ClassOf(err) == driver.ClassNotFound:
		return 0, 0, nil // no message was ever given back
	case err != nil:
		return 0, 0, err
	case !found && m.fromNext && !retry:
		return next, next, nil
	}
	first, err := conn.limitOffset(ctx, id, wire.ReqGetMinOffset)
	if err != nil {
		return 0, 0, err
	}
	end, err = conn.limitOffset(ctx, id, wire.ReqGetMaxOffset)
	return min(max(next, first), end), end, err // do not count messages that the broker has removed
}

var _ driver.Inspector = (*rocketDriver)(nil)

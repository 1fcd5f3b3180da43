package rocketmq

import (
	"context"
	"slices"
	"strings"
	"sync"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// place is a position of a group in a queue: the messages from offset next to end are not consumed.
type place struct {
	queueID
	membership
	conn      *conn
	next, end int64
}

// left is the number of messages that the group has not consumed.
func (p *place) left() uint64 { return uint64(max(0, p.end-p.next)) } //nolint:gosec // not below 0

// eachPlace calls f for the groups of a destination in each of their queues.
func (s *conns) eachPlace(
	ctx context.Context, r *route, topic string, dest driver.Destination, f func(*place),
) error {
	for _, b := range r.brokers {
		conn, err := s.connect(ctx, b.addr)
		if err != nil {
			return err
		}
		groups, err := s.groupsOf(ctx, conn, topic, dest)
		if err != nil {
			return err
		}
		for _, m := range groups {
			queues := []queueID{{wire.RetryPrefix + m.group, b.name, 0}}
			for n := range b.read {
				queues = append(queues, queueID{topic, b.name, n})
			}
			for _, id := range queues {
				p := place{queueID: id, membership: m, conn: conn}
				if err := p.find(ctx); err != nil {
					return err
				}
				f(&p)
			}
		}
	}
	return nil
}

func (p *place) retry() bool { return strings.HasPrefix(p.topic, wire.RetryPrefix) }

// find asks for the group's offset, and for the end of the queue.
func (p *place) find(ctx context.Context) error {
	offset, found, err := p.conn.savedOffset(ctx, p.group, p.queueID)
	if err != nil {
		if p.retry() && driver.ClassOf(err) == driver.ClassNotFound {
			return nil // no message was ever given back
		}
		return err
	}
	first, err := p.conn.limitOffset(ctx, p.queueID, wire.ReqGetMinOffset)
	if err != nil {
		return err
	}
	if p.end, err = p.conn.limitOffset(ctx, p.queueID, wire.ReqGetMaxOffset); err != nil {
		return err
	}
	switch {
	case found:
		p.next = min(max(offset, first), p.end) // do not count messages that the broker has removed
	case p.fromNext && !p.retry():
		p.next = p.end
	default:
		p.next = first
	}
	return nil
}

// groupsOf returns the groups of a destination on one broker.
func (s *conns) groupsOf(
	ctx context.Context, conn *conn, topic string, dest driver.Destination,
) ([]membership, error) {
	cfg := &s.d.cfg
	if dest.Kind == driver.Queue || cfg.Options.Group != "" {
		return []membership{cfg.Options.membershipOf(&driver.ConsumerSpec{Destination: dest}, "")}, nil
	}
	var list wire.Groups
	err := conn.query(ctx, "list the groups of a topic", wire.ReqQueryTopicConsumeByWho, []field{{"topic", topic}}, nil,
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

// inspector has connections of its own, which stay open between calls.
type inspector struct {
	asking sync.Mutex // held during each call
	*conns
	routes map[string]*route // as they were at the first call
}

// Inspect implements [driver.Inspector]. Added is the sum of the next offsets of a topic's queues, Acknowledged the sum
// of a queue's group offsets in them, and Depth the difference, including messages to be delivered again; for a topic,
// the sum over all groups.
func (d *rocketDriver) Inspect(
	ctx context.Context, destinations []driver.Destination,
) (list []driver.DestinationCount, err error) {
	ctx, cancel := d.opening(ctx)
	defer cancel()
	i := &d.inspector
	i.asking.Lock()
	defer i.asking.Unlock()
	for _, dest := range destinations {
		n, err := i.inspect(ctx, dest)
		if err != nil {
			i.close()
			clear(i.routes)
			return nil, wrap("ask the broker for its counters", err)
		}
		list = append(list, n)
	}
	return list, nil
}

func (i *inspector) inspect(ctx context.Context, dest driver.Destination) (n driver.DestinationCount, err error) {
	topic, err := topicName(dest)
	if err != nil {
		return n, err
	}
	r := i.routes[topic]
	if r == nil {
		r, err = i.lookUp(ctx, topic)
		if driver.ClassOf(err) == driver.ClassNotFound {
			return driver.NoDestination(), nil
		}
		if err != nil {
			return n, err
		}
		i.routes[topic] = r
	}
	n.Added, n.Depth = driver.Counted(0), driver.Counted(0)
	// Groups with a filter have names of their own, and skip messages that they exclude.
	_, filtered := i.d.filtered.Load(dest)
	acknowledges := dest.Kind == driver.Queue && !filtered
	if acknowledges {
		n.Acknowledged = driver.Counted(0)
	}
	for _, b := range r.brokers {
		conn, err := i.connect(ctx, b.addr)
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
	}
	err = i.eachPlace(ctx, r, topic, dest, func(p *place) {
		n.Depth.N += p.left()
		if acknowledges && !p.retry() {
			n.Acknowledged.N += uint64(max(0, p.next)) //nolint:gosec // not below 0
		}
	})
	return n, err
}

var _ driver.Inspector = (*rocketDriver)(nil)

package rocketmq

import (
	"context"
	"strings"
	"sync"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// inspector has connections of its own, which stay open from one call to the next.
type inspector struct {
	mu     sync.Mutex
	conns  map[string]*conn
	routes map[string]*route
}

// close closes the connections.
func (i *inspector) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reset()
}

func (i *inspector) reset() {
	for _, c := range i.conns {
		c.close()
	}
	i.conns, i.routes = nil, nil
}

// Inspect implements [driver.Inspector]. Messages added are the next offsets of a topic's queues, acknowledged ones
// the offsets of a queue's group in them, and the depth is the difference, with messages to be delivered again; of
// a topic, that of all groups.
func (d *rocketDriver) Inspect(
	ctx context.Context, destinations []driver.Destination,
) (list []driver.DestinationCount, err error) {
	ctx, cancel := d.opening(ctx)
	defer cancel()
	i := &d.inspector
	i.mu.Lock()
	defer i.mu.Unlock()
	a := d.cfg.newCaller()
	for _, dest := range destinations {
		n, err := d.inspect(ctx, a, dest)
		if err != nil {
			i.reset()
			return nil, wrapOnce("ask the broker for its counters", err)
		}
		list = append(list, n)
	}
	return list, nil
}

func (d *rocketDriver) inspect(
	ctx context.Context, a *caller, dest driver.Destination,
) (n driver.DestinationCount, err error) {
	topic, err := d.cfg.topicName(dest)
	if err != nil {
		return n, err
	}
	r, err := d.inspected(ctx, a, topic)
	if driver.ClassOf(err) == driver.ClassNotFound {
		return driver.NoDestination(), nil
	}
	if err != nil {
		return n, err
	}
	n.Added, n.Depth = driver.Counted(0), driver.Counted(0)
	// Groups with a filter have names of their own, and pass over what they do not want.
	_, filtered := d.filtered.Load(dest)
	acknowledges := dest.Kind == driver.Queue && !filtered
	if acknowledges {
		n.Acknowledged = driver.Counted(0)
	}
	for _, b := range r.brokers {
		conn, err := d.inspectedBroker(ctx, b.addr)
		if err != nil {
			return n, err
		}
		for number := range max(b.read, b.write) {
			end, err := a.limitOffset(ctx, &queue{queueID: queueID{topic, b.name, number}, conn: conn}, wire.ReqGetMaxOffset)
			if err != nil {
				return n, err
			}
			n.Added.N += uint64(max(0, end)) //nolint:gosec // not below 0
		}
		err = d.eachPlaceOn(ctx, a, conn, topic, &b, dest, "", func(_ context.Context, _ *caller, p *place) error {
			n.Depth.N += uint64(max(0, p.end-p.next)) //nolint:gosec // not below 0
			if acknowledges && !strings.HasPrefix(p.topic, wire.RetryPrefix) {
				n.Acknowledged.N += uint64(max(0, p.next)) //nolint:gosec // not below 0
			}
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// inspected returns the route of a topic, as it was at the first call.
func (d *rocketDriver) inspected(ctx context.Context, a *caller, topic string) (*route, error) {
	i := &d.inspector
	if r := i.routes[topic]; r != nil {
		return r, nil
	}
	ns, err := d.nameServer(ctx)
	if err != nil {
		return nil, err
	}
	defer ns.close()
	r, err := d.lookUp(ctx, a, ns, topic)
	if err != nil {
		return nil, err
	}
	if i.routes == nil {
		i.routes = map[string]*route{}
	}
	i.routes[topic] = r
	return r, nil
}

func (d *rocketDriver) inspectedBroker(ctx context.Context, addr string) (*conn, error) {
	i := &d.inspector
	if c := i.conns[addr]; c != nil && !c.Dead() {
		return c, nil
	}
	c, err := d.dial(ctx, addr, nil)
	if err != nil {
		return nil, err
	}
	if i.conns == nil {
		i.conns = map[string]*conn{}
	}
	i.conns[addr] = c
	return c, nil
}

var _ driver.Inspector = (*rocketDriver)(nil)

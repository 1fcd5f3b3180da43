package rocketmq

import (
	"bytes"
	"context"
	"slices"
	"time"
)

// refreshEvery is how often routes are looked up again, as all clients do (pollNameServerInterval).
const refreshEvery = 30 * time.Second

// reroute is a route that a consumer is to take over, with the connections to its brokers.
type reroute struct {
	route *route
	conns []*conn
}

// refresh looks up the routes in use from time to time, so that queues are used that topics get during a run, and
// brokers that come back. Where the look-up fails, the known route stays.
func (c *client) refresh() {
	tick := time.NewTicker(c.d.refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		ctx, cancel := c.while(heartbeatLimit)
		producers, consumers := c.members()
		for _, p := range producers {
			if r := c.d.routeNow(ctx, p.topic); r != nil {
				p.adopt(ctx, r)
			}
		}
		for _, m := range consumers {
			if r := c.d.routeNow(ctx, m.topic); r != nil {
				m.offer(ctx, r)
			}
		}
		cancel()
	}
}

// while returns a context that ends with the client or after a time.
func (c *client) while(limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	go func() { // ends with the client
		select {
		case <-c.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// members returns the producers and consumers that are open.
func (c *client) members() (producers []*producer, consumers []*consumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range c.producers {
		producers = append(producers, list...)
	}
	for _, m := range c.consumers {
		if m != nil {
			consumers = append(consumers, m)
		}
	}
	return producers, consumers
}

// routeNow returns the route of a topic as it is now, or was a moment ago; nil if that cannot be found out.
func (d *rocketDriver) routeNow(ctx context.Context, topic string) *route {
	if r := d.knownRoute(ctx, topic); r == nil || time.Since(r.seen) < d.refreshEvery/2 {
		return r
	}
	ns, err := d.nameServer(ctx)
	if err != nil {
		return nil
	}
	defer ns.close()
	r, err := d.lookUp(ctx, d.cfg.newCaller(), ns, topic)
	if err != nil {
		return nil
	}
	select {
	case d.topics.turn <- struct{}{}:
		d.topics.routes[topic] = r
		<-d.topics.turn
	case <-ctx.Done():
	}
	return r
}

func (d *rocketDriver) knownRoute(ctx context.Context, topic string) *route {
	select {
	case d.topics.turn <- struct{}{}:
		defer func() { <-d.topics.turn }()
		return d.topics.routes[topic]
	case <-ctx.Done():
		return nil
	}
}

// adopt makes a producer send to the queues of a route. Queues of a broker that cannot be reached stay as they were.
func (p *producer) adopt(ctx context.Context, r *route) {
	old := p.queues.Load()
	if old == nil {
		return // it is being opened
	}
	var list []sendQueue
	for _, b := range r.brokers {
		if b.write == 0 {
			continue
		}
		conn, err := p.client.enlist(ctx, b.addr)
		if err == nil {
			list = p.appendQueues(list, conn, b)
			continue
		}
		for _, q := range *old {
			if q.broker == b.name {
				list = append(list, q)
			}
		}
	}
	same := func(x, y sendQueue) bool { return x.conn == y.conn && bytes.Equal(x.prefix, y.prefix) }
	if len(list) > 0 && !slices.EqualFunc(list, *old, same) {
		p.queues.Store(&list)
	}
}

// offer lets manage take over a route. It does nothing if a new broker cannot be reached: the next refresh tries again.
func (c *consumer) offer(ctx context.Context, r *route) {
	if slices.Equal(r.brokers, c.offered.route.brokers) {
		return
	}
	f := &reroute{route: r}
	for _, b := range r.brokers {
		conn, err := c.client.enlist(ctx, b.addr)
		if err != nil {
			return
		}
		if !slices.Contains(c.offered.conns, conn) && c.client.ensureGroup(ctx, conn, c.group) != nil {
			return
		}
		f.conns = append(f.conns, conn)
	}
	c.offered = f
	c.fresh.Store(f)
	c.kick()
}

// adopt takes over the route that was offered last. Only manage calls it.
func (c *consumer) adopt(ctx context.Context) {
	f := c.fresh.Swap(nil)
	if f == nil {
		return
	}
	for _, conn := range f.conns {
		if !slices.Contains(c.conns, conn) {
			c.watchers.Go(func() { c.watch(ctx, conn) })
		}
	}
	c.route, c.conns = f.route, f.conns
	c.reached.Store(&f.conns)
}

// enlist returns the connection to a broker that knows of the client's groups, opening it if need be.
func (c *client) enlist(ctx context.Context, addr string) (*conn, error) {
	if conn := c.known(addr); conn != nil && !conn.Dead() {
		return conn, nil // a client that joins a group tells all brokers
	}
	conn, err := c.connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	return conn, c.beat(ctx, conn)
}

package rocketmq

import "context"

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	p.closeMu.Lock()
	defer p.closeMu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	if p.batch != nil {
		p.batch.stop(ctx)
	}
	p.letGo()
	p.closing.Store(true)
	if !p.waitIdle(ctx) {
		for _, c := range p.client.connections() { // also connections that are no more in the route
			c.abandon(p)
			if p.batch != nil {
				c.abandon(p.batch)
			}
		}
		p.waitIdle(context.Background()) // messages that are being reported just now
	}
	var err error
	if p.tx != nil {
		err = p.tx.waitChecks(ctx)
		p.d.setAsked(p.id[:idSeed], nil)
	}
	if p.client.part(p) {
		p.unregister(ctx)
	}
	p.lease.Release(ctx)
	return err
}

// unregister leaves the group at the brokers. Where that fails, the connection's end will do it.
func (p *producer) unregister(ctx context.Context) {
	ctx, cancel := leaving(ctx)
	defer cancel()
	for _, c := range p.conns() {
		if ctx.Err() != nil {
			return
		}
		if !c.Dead() {
			_ = p.client.unregister(ctx, c, "producerGroup", p.group)
		}
	}
}

// reachable returns an error if no broker is there to send to.
func (p *producer) reachable(k *kind) error {
	list := *p.queues.Load()
	if k != nil && k.group != "" {
		list = p.home[k.hash%uint32(len(p.home)):][:1]
	}
	for i := range list {
		if !list[i].conn.Dead() {
			return nil
		}
	}
	return wrap(p.op, list[0].conn.Why())
}

func (p *producer) waitIdle(ctx context.Context) bool {
	for p.inFlight.Load() > 0 {
		select {
		case <-p.idle:
		case <-ctx.Done():
			return p.inFlight.Load() == 0
		}
	}
	return true
}

// conns returns the connections in use, each once.
func (p *producer) conns() []*conn {
	var list []*conn
	seen := map[*conn]bool{}
	for _, q := range *p.queues.Load() {
		if !seen[q.conn] {
			seen[q.conn] = true
			list = append(list, q.conn)
		}
	}
	return list
}

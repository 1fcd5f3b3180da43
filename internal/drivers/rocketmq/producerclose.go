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
		p.batch.flushLast(ctx)
	}
	p.closing.Store(true)
	if !p.waitIdle(ctx) {
		for _, c := range p.conns() {
			c.abandon(p)
			if p.batch != nil {
				c.abandon(p.batch)
			}
		}
		p.waitIdle(context.Background()) // those that are being reported just now
	}
	if p.tx != nil {
		p.tx.waitChecks(ctx)
	}
	if p.client.part(p) {
		p.unregister(ctx)
	}
	p.client.d.release(ctx, p.client)
	return nil
}

// unregister leaves the group at the brokers. Where that fails, the connection's end will do it.
func (p *producer) unregister(ctx context.Context) {
	ctx, cancel := leaving(ctx)
	defer cancel()
	for _, c := range p.conns() {
		if ctx.Err() != nil {
			return
		}
		if !c.isDead() {
			_ = p.client.unregister(ctx, c, "producerGroup", p.group)
		}
	}
}

// reachable returns an error if no broker is there to send to.
func (p *producer) reachable() error {
	for i := range p.queues {
		if !p.queues[i].conn.isDead() {
			return nil
		}
	}
	return wrap(p.op, p.queues[0].conn.failure())
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
	for _, q := range p.queues {
		if !seen[q.conn] {
			seen[q.conn] = true
			list = append(list, q.conn)
		}
	}
	return list
}

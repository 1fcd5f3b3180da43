package rocketmq

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A broker looks up the group of a pull again when it stops holding the pull, even if the client has gone, and creates
// the group if it does not exist (SubscriptionGroupManager.findSubscriptionGroupConfig). So a group is deleted when the
// broker has answered all pulls, or when it must have forgotten them.

// heldTime is the longest time for which a broker may hold a pull.
const heldTime = holdTime + lookTime + time.Second

// departs records that members left while brokers may have held their pulls.
func (g *groupState) departs(remove bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held, g.remove = time.Now().Add(heldTime), remove
}

// keep records that the group has a member again.
func (g *groupState) keep() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove = false
}

// waitHeld returns when brokers hold no pull of earlier members of the group, or ctx ends.
func (g *groupState) waitHeld(ctx context.Context) {
	g.mu.Lock()
	held := g.held
	g.mu.Unlock()
	await(ctx, time.Until(held), nil)
}

// await waits for an event, for a time at most, or until ctx ends. It returns whether the event came.
func await(ctx context.Context, limit time.Duration, event <-chan struct{}) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-event:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// leave gives all queues back and leaves the group. It deletes the group if it was only for this run and has no other
// member.
func (c *consumer) leave(ctx context.Context) error {
	c.d.members.Add(-1)
	polite, cancel := c.d.leaving(ctx)
	defer cancel()
	c.mu.Lock()
	c.leaving = true
	c.mu.Unlock()
	whole := !slices.ContainsFunc(c.conns, (*conn).Dead) // all brokers are reachable
	if whole {
		// Messages that cannot be given back will be delivered again: none is lost.
		_ = c.giveBack(polite, slices.Collect(maps.Values(c.owned)))
	}
	c.client.mu.Lock()
	delete(c.client.consumers, c.group)
	c.client.mu.Unlock()
	for _, conn := range c.conns {
		if !conn.Dead() && polite.Err() == nil {
			_ = c.client.unregister(polite, conn, "consumerGroup", c.group)
		}
	}
	returns := !c.explicit // a deleted group may return
	answered := c.endPulls(polite, whole && c.passing && returns)
	if !whole || returns && !answered {
		c.d.groups.Store(c.group, c.shared) // also if the consumer was alone in it
		defer c.shared.departs(c.passing)
	}
	var err error
	if c.passing && polite.Err() == nil && len(c.conns) > 0 {
		if whole {
			c.shared.waitHeld(polite)
		}
		err = c.d.deleteUnused(polite, c.group)
	}
	c.lease.Release(ctx)
	if !whole || ctx.Err() != nil {
		return nil // the run already knows that the broker has gone
	}
	return err
}

// endPulls abandons the pulls; with wait, it first waits for their answers. It returns whether all were answered.
func (c *consumer) endPulls(ctx context.Context, wait bool) bool {
	asked := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.asked
	}
	for wait && asked() > 0 {
		wait = await(ctx, heldTime, c.arrived)
	}
	answered := asked() == 0
	for _, conn := range c.conns {
		conn.endCalls(errAbandoned, func(e *call) bool { p, ok := e.to.(*pulled); return ok && p.c == c })
	}
	return answered
}

// deleteUnused deletes a group unless a broker reports members.
func (d *rocketDriver) deleteUnused(ctx context.Context, group string) error {
	s := d.newConns(nil)
	defer s.close()
	used := false
	err := s.onMasters(ctx, func(c *conn) error {
		members, err := c.membersOf(ctx, group)
		used = used || len(members) > 0
		return err
	})
	if err != nil || used {
		return err
	}
	return s.deleteGroup(ctx, group)
}

// removeDeparted deletes the groups that were left while pulls may have been held.
func (d *rocketDriver) removeDeparted(ctx context.Context) {
	ctx, cancel := d.opening(ctx)
	defer cancel()
	d.groups.Range(func(_, state any) bool {
		g := state.(*groupState) // the driver is closed: nobody changes it
		if g.remove && d.deleteUnused(ctx, g.name) == nil && time.Now().Before(g.held) {
			g.waitHeld(ctx)
			_ = d.deleteUnused(ctx, g.name)
		}
		return true // even after an error: the run already knows that the broker has gone
	})
}

// keeper does the periodic work for the clients of a driver: overdue calls and heartbeats. One timer serves all,
// because timers and two goroutines for each of thousands of clients would take more memory and time than their load.
type keeper struct {
	mu      sync.Mutex
	clients map[*client]time.Time // and when their next heartbeat is due
	conns   []*conn               // connections of one client
	timer   *time.Timer           // nil without clients
}

// add registers a client.
func (k *keeper) add(c *client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.clients == nil {
		k.clients = map[*client]time.Time{}
	}
	k.clients[c] = time.Now().Add(heartbeatEvery)
	if k.timer == nil {
		k.timer = time.AfterFunc(sweepEvery, k.look)
	}
}

// remove removes a client. The timer ends after the last one.
func (k *keeper) remove(c *client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.clients, c)
}

// look performs the due tasks. None of them waits.
func (k *keeper) look() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for c, heartbeat := range k.clients {
		k.conns = c.appendAll(k.conns)
		for _, conn := range k.conns {
			conn.sweep()
		}
		clear(k.conns)
		k.conns = k.conns[:0]
		if now.After(heartbeat) {
			k.clients[c] = now.Add(heartbeatEvery)
			c.wg.Go(c.beatAll)
		}
	}
	if len(k.clients) == 0 {
		k.timer = nil
		return
	}
	k.timer.Reset(min(max(sweepEvery, time.Duration(len(k.clients))*sweepPause), sweepRarely))
}

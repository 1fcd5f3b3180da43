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

// departed has the groups that consumers of a driver left while the broker may have held pulls.
type departed struct {
	mu     sync.Mutex
	groups map[string]departure
}

type departure struct {
	held   time.Time // when the broker holds no pull any more
	remove bool      // the group is then to be deleted
}

func (d *departed) add(group string, remove bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.groups == nil {
		d.groups = map[string]departure{}
	}
	d.groups[group] = departure{time.Now().Add(heldTime), remove}
}

// keep records that the group has a member again.
func (d *departed) keep(group string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g, left := d.groups[group]; left {
		g.remove = false
		d.groups[group] = g
	}
}

// wait returns when the broker holds no pull of earlier members of the group, or ctx ends.
func (d *departed) wait(ctx context.Context, group string) {
	d.mu.Lock()
	held := d.groups[group].held
	d.mu.Unlock()
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
		defer c.d.departed.add(c.group, c.passing)
	}
	var err error
	if c.passing && polite.Err() == nil && len(c.conns) > 0 {
		if whole {
			c.d.departed.wait(polite, c.group)
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
	s := d.newSession()
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
	for group, g := range d.departed.groups { // the driver is closed: nobody changes them
		if !g.remove || d.deleteUnused(ctx, group) != nil {
			continue // the run already knows that the broker has gone
		}
		if time.Now().Before(g.held) {
			d.departed.wait(ctx, group)
			_ = d.deleteUnused(ctx, group)
		}
	}
}

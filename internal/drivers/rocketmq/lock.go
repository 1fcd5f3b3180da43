package rocketmq

import (
	"context"
	"encoding/json"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// byConn calls f for the queues of each connection.
func (c *consumer) byConn(queues []*queue, f func(*conn, []byte) error) error {
	lists := map[*conn][]wire.Queue{}
	for _, q := range queues {
		lists[q.conn] = append(lists[q.conn], wire.Queue{Topic: q.topic, Broker: q.broker, Queue: q.number})
	}
	for conn, list := range lists {
		body, err := json.Marshal(wire.Lock{Group: c.group, ClientID: c.client.id, Queues: list})
		if err != nil {
			return err
		}
		if err := f(conn, body); err != nil {
			return err
		}
	}
	return nil
}

// lock asks the brokers to lock queues for us, and returns the queues that they locked.
func (c *consumer) lock(ctx context.Context, queues []*queue) (map[queueID]bool, error) {
	const op = "lock queues"
	locked := map[queueID]bool{}
	err := c.byConn(queues, func(conn *conn, body []byte) error {
		r, err := c.client.must(ctx, conn, op, wire.ReqLockBatchMQ, nil, body)
		if err != nil {
			return err
		}
		var answer wire.Locked
		if err := wire.UnmarshalJSON(r.Body, &answer); err != nil {
			return driver.Errorf(driver.ClassProtocol, op, lookAtBroker, "read the broker's answer: %w", err)
		}
		for _, q := range answer.Queues {
			locked[queueID{q.Topic, q.Broker, q.Queue}] = true
		}
		return nil
	})
	return locked, err
}

// unlock gives queues free.
func (c *consumer) unlock(ctx context.Context, queues []*queue) error {
	return c.byConn(queues, func(conn *conn, body []byte) error {
		_, err := c.client.must(ctx, conn, "unlock queues", wire.ReqUnlockBatchMQ, nil, body)
		return err
	})
}

// leave gives everything back and leaves the group, deleting it if it was only for this run and has no other member.
func (c *consumer) leave(ctx context.Context) error {
	polite, cancel := leaving(ctx)
	defer cancel()
	whole := true // all brokers are there
	for _, conn := range c.conns {
		conn.endCalls(errAbandoned, func(e *call) bool { p, ok := e.to.(*pulled); return ok && p.c == c })
		whole = whole && !conn.Dead()
	}
	var all []*queue
	for _, q := range c.owned {
		all = append(all, q)
	}
	if whole {
		_ = c.giveBack(polite, all) // messages that cannot be given back will be delivered again: nothing is lost
	}
	for _, conn := range c.conns {
		if !conn.Dead() && polite.Err() == nil {
			_ = c.client.unregister(polite, conn, "consumerGroup", c.group)
		}
	}
	c.client.mu.Lock()
	delete(c.client.consumers, c.group)
	c.client.mu.Unlock()
	var err error
	if c.passing && polite.Err() == nil && len(c.conns) > 0 {
		err = c.dissolve(polite)
	}
	c.lease.Release(ctx)
	if !whole || ctx.Err() != nil {
		return nil // the run has been told already that the broker has gone
	}
	return err
}

// dissolve deletes the group unless it has members.
func (c *consumer) dissolve(ctx context.Context) error {
	if conn := c.conns[0]; !conn.Dead() {
		if members, err := c.client.membersOf(ctx, conn, c.group); err != nil || len(members) > 0 {
			return err
		}
	}
	return c.d.deleteGroup(ctx, c.group)
}

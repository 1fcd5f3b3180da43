package rocketmq

import (
	"context"
	"strconv"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// join connects and makes the consumer a member of its group.
func (c *consumer) join(ctx context.Context, op string, spec *driver.ConsumerSpec) error {
	r, err := c.d.routeOf(ctx, c.topic)
	if err != nil {
		return err
	}
	if c.lease, err = c.d.acquire(ctx, spec.Connection, c.group); err != nil {
		return err
	}
	c.client = c.lease.Conn
	c.d.members.Add(1)
	c.shared.keep()
	if err := c.subscribe(ctx, r); err != nil {
		return wrap(op, err)
	}
	return nil
}

// subscribe reports the consumer to the brokers and fixes the offset at which a new group starts in each queue.
func (c *consumer) subscribe(ctx context.Context, r *route) error {
	c.route, c.explicit = r, true
	for _, b := range r.brokers {
		conn, err := c.client.connect(ctx, b.addr)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
		created, err := conn.ensureGroup(ctx, c.group)
		if err != nil {
			return err
		}
		c.explicit = c.explicit && created
		if c.filter.Kind != wire.KindTag {
			if err := c.checkFilter(ctx, conn); err != nil {
				return err
			}
		}
	}
	c.client.mu.Lock()
	c.client.consumers[c.group] = c
	c.client.mu.Unlock()
	for _, conn := range c.conns {
		if err := c.client.beat(ctx, conn); err != nil {
			return err
		}
	}
	if c.fromNext {
		return c.fixStart(ctx)
	}
	return nil
}

// awaitShares takes this consumer's share of the queues and returns when all consumers that were opened together own
// theirs.
func (c *consumer) awaitShares(ctx context.Context) error {
	tick := time.NewTicker(lockRetry)
	defer tick.Stop()
	for {
		complete, err := c.rebalance(ctx)
		if err != nil {
			return err
		}
		retry, settled := tick.C, (<-chan struct{})(nil)
		if complete {
			retry, settled = nil, c.shared.settle(c)
		}
		select {
		case <-settled:
			return nil
		case <-retry:
		case <-c.kicked:
		case <-ctx.Done():
			return driver.Errorf(driver.ClassTimeout, "",
				"a killed consumer of the group keeps its locks for a minute",
				"the broker did not give us our queues of group %s: %w", c.group, ctx.Err())
		}
	}
}

// ensureGroup creates the group at a broker that does not have it and does not create groups on first use
// (autoCreateSubscriptionGroup=false), and returns whether it did. It changes nothing at other brokers, nor at brokers
// too old for the question.
func (c *conn) ensureGroup(ctx context.Context, group string) (created bool, err error) {
	r, err := c.call(ctx, wire.ReqGetSubscriptionGroupConfig, []string{"group", group}, nil)
	if err != nil || r.Code != wire.ResSubscriptionGroupNotExist {
		return false, err // of the connection; a refusal by the broker will come again
	}
	_, err = c.must(ctx, "create group "+group, wire.ReqUpdateAndCreateSubscriptionGroup, nil,
		map[string]any{ // SubscriptionGroupConfig, with its defaults
			"groupName": group, "consumeEnable": true, "consumeFromMinEnable": true, "consumeBroadcastEnable": true,
			"retryQueueNums": 1, "retryMaxTimes": 16, "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1,
			"notifyConsumerIdsChangedEnable": true,
		})
	return err == nil, err
}

// checkFilter lets the broker validate an SQL expression.
func (c *consumer) checkFilter(ctx context.Context, conn *conn) error {
	_, err := conn.must(ctx, "set the filter "+strconv.Quote(c.filter.Expression), wire.ReqCheckClientConfig, nil,
		wire.ClientCheck{
			ClientID: c.client.id, Group: c.group, Subscription: c.filter,
		})
	return err
}

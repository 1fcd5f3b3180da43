package rocketmq

import (
	"bytes"
	"context"
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// fixStart lets a new group start at the next message sent, in all queues.
func (c *consumer) fixStart(ctx context.Context) error {
	for i, b := range c.route.brokers {
		fresh, err := c.freshQueues(ctx, c.conns[i], &b)
		if err != nil {
			return err
		}
		for _, q := range fresh {
			end, err := c.client.limitOffset(ctx, q, wire.ReqGetMaxOffset)
			if err != nil {
				return err
			}
			if err := c.client.saveOffset(ctx, q, c.group, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// freshQueues returns those queues of a broker where the group has not been yet. RocketMQ before 5 knows no
// setZeroIfNotFound: it says 0 of them, too, if the queue has all of its messages. Then the group's statistics tell
// whether it has been in the topic.
func (c *consumer) freshQueues(ctx context.Context, conn *conn, b *routeBroker) ([]*queue, error) {
	var fresh, doubtful []*queue
	for n := range b.read {
		q := &queue{queueID: queueID{c.topic, b.name, n}, conn: conn}
		offset, found, err := c.client.savedOffset(ctx, q, c.group)
		switch {
		case err != nil:
			return nil, err
		case !found:
			fresh = append(fresh, q)
		case offset == 0 && conn.old():
			doubtful = append(doubtful, q)
		}
	}
	if len(doubtful) == 0 {
		return fresh, nil
	}
	r, err := c.client.must(ctx, conn, "ask where the group has been", wire.ReqGetConsumeStats,
		[]field{{"consumerGroup", c.group}, {"topic", ""}}, nil)
	if err != nil {
		return nil, err
	}
	// The answer has objects as keys, so that it is no JSON.
	if bytes.Contains(r.Body, []byte(`"topic":"`+c.topic+`"`)) {
		return fresh, nil
	}
	return append(fresh, doubtful...), nil
}

// savedOffset asks where a group stands in a queue.
func (a *caller) savedOffset(ctx context.Context, q *queue, group string) (offset int64, found bool, err error) {
	const op = "ask where the group stands"
	r, err := a.call(ctx, q.conn, wire.ReqQueryConsumerOffset, []field{
		{"consumerGroup", group}, {"topic", q.topic}, {"queueId", strconv.Itoa(q.number)}, {"setZeroIfNotFound", "false"},
	}, nil)
	switch {
	case err != nil:
		return 0, false, wrap(op, err)
	case r.Code == wire.ResQueryNotFound:
		return 0, false, nil
	case r.Code != wire.ResSuccess:
		return 0, false, wrap(op, refusal(r))
	}
	offset, found = r.Number("offset")
	return offset, found, nil
}

// saveOffset tells the broker where a group stands in a queue.
func (a *caller) saveOffset(ctx context.Context, q *queue, group string, offset int64) error {
	_, err := a.must(ctx, q.conn, "save where the group stands", wire.ReqUpdateConsumerOffset, []field{
		{"consumerGroup", group},
		{"topic", q.topic},
		{"queueId", strconv.Itoa(q.number)},
		{"commitOffset", strconv.FormatInt(offset, 10)},
	}, nil)
	return err
}

// limitOffset asks for the first (wire.ReqGetMinOffset) or next (wire.ReqGetMaxOffset) offset of a queue.
func (a *caller) limitOffset(ctx context.Context, q *queue, code int) (int64, error) {
	r, err := a.must(ctx, q.conn, "ask for the limits of a queue", code,
		[]field{{"topic", q.topic}, {"queueId", strconv.Itoa(q.number)}}, nil)
	if err != nil {
		return 0, err
	}
	n, ok := r.Number("offset")
	if !ok {
		return 0, driver.Errorf(driver.ClassProtocol, "ask for the limits of a queue", lookAtBroker,
			"the answer has no offset")
	}
	return n, nil
}

// position finds out where to begin with a queue.
func (c *consumer) position(ctx context.Context, q *queue) error {
	offset, found := int64(0), false
	var err error
	if c.opts.Model == clustering {
		if offset, found, err = c.client.savedOffset(ctx, q, c.group); err != nil {
			return err
		}
	}
	if !found {
		limit := int(wire.ReqGetMinOffset)
		if c.fromNext && c.initial[q.queueID] { // the messages in later queues were sent later
			limit = wire.ReqGetMaxOffset
		}
		if offset, err = c.client.limitOffset(ctx, q, limit); err != nil {
			return err
		}
		// A broker that is told of two queues at once where it knew of none forgets one: both threads make the
		// group's table (ConsumerOffsetManager.commitOffset). So it is told of each before there is anything to lose.
		if c.opts.Model == clustering && !q.retry {
			if err := c.client.saveOffset(ctx, q, c.group, offset); err != nil {
				return err
			}
		}
	}
	q.next = offset
	q.consumed.Store(offset)
	q.beginAt(offset)
	return nil
}

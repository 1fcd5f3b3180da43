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
	at := c.at.Load()
	for i, b := range at.route.brokers {
		conn := at.conns[i]
		fresh, err := c.freshQueues(ctx, conn, &b)
		if err != nil {
			return err
		}
		for _, id := range fresh {
			end, err := conn.limitOffset(ctx, id, wire.ReqGetMaxOffset)
			if err != nil {
				return err
			}
			if err := conn.saveOffset(ctx, c.group, id, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// freshQueues returns those queues of a broker where the group has not been yet. RocketMQ before 5 knows no
// setZeroIfNotFound: it says 0 of them, too, if the queue has all of its messages. Then the group's statistics tell
// whether it has been in the topic.
func (c *consumer) freshQueues(ctx context.Context, conn *conn, b *routeBroker) ([]queueID, error) {
	var fresh, doubtful []queueID
	for n := range b.read {
		id := queueID{c.topic, b.name, n}
		offset, found, err := conn.savedOffset(ctx, c.group, id)
		switch {
		case err != nil:
			return nil, err
		case !found:
			fresh = append(fresh, id)
		case offset == 0 && conn.old():
			doubtful = append(doubtful, id)
		}
	}
	if len(doubtful) == 0 {
		return fresh, nil
	}
	r, err := conn.must(ctx, "ask where the group has been", wire.ReqGetConsumeStats,
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
func (c *conn) savedOffset(ctx context.Context, group string, id queueID) (offset int64, found bool, err error) {
	const op = "ask where the group stands"
	r, err := c.call(ctx, wire.ReqQueryConsumerOffset, []field{
		{"consumerGroup", group}, {"topic", id.topic}, {"queueId", strconv.Itoa(id.number)}, {"setZeroIfNotFound", "false"},
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
func (c *conn) saveOffset(ctx context.Context, group string, id queueID, offset int64) error {
	_, err := c.must(ctx, "save where the group stands", wire.ReqUpdateConsumerOffset, []field{
		{"consumerGroup", group},
		{"topic", id.topic},
		{"queueId", strconv.Itoa(id.number)},
		{"commitOffset", strconv.FormatInt(offset, 10)},
	}, nil)
	return err
}

// limitOffset asks for the first (wire.ReqGetMinOffset) or next (wire.ReqGetMaxOffset) offset of a queue.
func (c *conn) limitOffset(ctx context.Context, id queueID, code int) (int64, error) {
	const op = "ask for the limits of a queue"
	r, err := c.must(ctx, op, code, []field{{"topic", id.topic}, {"queueId", strconv.Itoa(id.number)}}, nil)
	if err != nil {
		return 0, err
	}
	n, ok := r.Number("offset")
	if !ok {
		return 0, driver.Errorf(driver.ClassProtocol, op, lookAtBroker, "the answer has no offset")
	}
	return n, nil
}

// position finds out where to begin with a queue.
func (c *consumer) position(ctx context.Context, q *queue) error {
	offset, found := int64(0), false
	var err error
	if c.opts.Model == clustering {
		if offset, found, err = q.conn.savedOffset(ctx, c.group, q.queueID); err != nil {
			return err
		}
	}
	if !found {
		limit := int(wire.ReqGetMinOffset)
		if c.fromNext && c.initial[q.queueID] { // the messages in later queues were sent later
			limit = wire.ReqGetMaxOffset
		}
		if offset, err = q.conn.limitOffset(ctx, q.queueID, limit); err != nil {
			return err
		}
		// A broker that is told of two queues at once where it knew of none forgets one: both threads make the
		// group's table (ConsumerOffsetManager.commitOffset). So it is told of each before there is anything to lose.
		if c.opts.Model == clustering && !q.retry {
			if err := q.conn.saveOffset(ctx, c.group, q.queueID, offset); err != nil {
				return err
			}
		}
	}
	q.next = offset
	q.consumed.Store(offset)
	q.beginAt(offset)
	return nil
}

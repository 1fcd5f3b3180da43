package rocketmq

import (
	"bytes"
	"context"
	"strconv"
	"sync/atomic"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Operations on the offset of a group in a queue.
const (
	opStands = "ask for offsets"
	opSave   = "save an offset"
)

// fixStart makes a new group start at the next message sent, in all queues, unless another consumer of this driver has
// seen to that.
func (c *consumer) fixStart(ctx context.Context) error {
	if err := c.shared.turn.take(ctx, opStands); err != nil {
		return err
	}
	defer c.shared.turn.give()
	if c.shared.starts(c.route) {
		return nil
	}
	for i, b := range c.route.brokers {
		conn := c.conns[i]
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
	c.shared.start.Store(c.route)
	return nil
}

// freshQueues returns the queues of a broker that the group has not consumed from yet. RocketMQ before 5 has no
// setZeroIfNotFound: it returns 0 for them, too, if the queue still has all of its messages. Then the group's
// statistics show whether it has consumed from the topic.
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
	r, err := conn.must(ctx, "ask for statistics", wire.ReqGetConsumeStats,
		[]string{"consumerGroup", c.group, "topic", ""}, nil)
	if err != nil {
		return nil, err
	}
	// The answer has objects as keys, and so is not JSON.
	if bytes.Contains(r.Body, []byte(`"topic":"`+c.topic+`"`)) {
		return fresh, nil
	}
	return append(fresh, doubtful...), nil
}

// savedOffset asks for the saved offset of a group in a queue.
func (c *conn) savedOffset(ctx context.Context, group string, id queueID) (offset int64, found bool, err error) {
	r, err := c.call(ctx, wire.ReqQueryConsumerOffset, []string{
		"consumerGroup", group, "topic", id.topic, "queueId", strconv.Itoa(id.number), "setZeroIfNotFound", "false",
	}, nil)
	switch {
	case err != nil:
		return 0, false, wrap(opStands, err)
	case r.Code == wire.ResQueryNotFound:
		return 0, false, nil
	case r.Code != wire.ResSuccess:
		return 0, false, wrap(opStands, refusal(r))
	}
	offset, found = r.Number("offset")
	return offset, found, nil
}

// saveOffset saves the offset of a group in a queue.
func (c *conn) saveOffset(ctx context.Context, group string, id queueID, offset int64) error {
	_, err := c.must(ctx, opSave, wire.ReqUpdateConsumerOffset, []string{
		"consumerGroup", group, "topic", id.topic, "queueId", strconv.Itoa(id.number),
		"commitOffset", strconv.FormatInt(offset, 10),
	}, nil)
	return err
}

// limitOffset asks for the first (wire.ReqGetMinOffset) or next (wire.ReqGetMaxOffset) offset of a queue.
func (c *conn) limitOffset(ctx context.Context, id queueID, code int) (int64, error) {
	const op = "ask for limits"
	r, err := c.must(ctx, op, code, []string{"topic", id.topic, "queueId", strconv.Itoa(id.number)}, nil)
	if err != nil {
		return 0, err
	}
	n, ok := r.Number("offset")
	if !ok {
		return 0, driver.Errorf(driver.ClassProtocol, op, lookAtBroker, "the answer has no offset")
	}
	return n, nil
}

// stands returns the offset of the group in a queue: the saved one, if found, or else the one at which it begins.
func (m *membership) stands(ctx context.Context, conn *conn, id queueID, retry bool) (at int64, found bool, err error) {
	at, found, err = conn.savedOffset(ctx, m.group, id)
	if err != nil || found {
		return at, found, err
	}
	limit := int(wire.ReqGetMinOffset)
	if m.fromNext && !retry {
		limit = wire.ReqGetMaxOffset
	}
	at, err = conn.limitOffset(ctx, id, limit)
	return at, false, err
}

// position determines the offset at which to begin with a queue.
func (c *consumer) position(ctx context.Context, q *queue) error {
	offset, found, err := c.stands(ctx, q.conn, q.queueID, q.retry)
	if err != nil {
		return err
	}
	// A broker that gets the first offsets of two queues at once loses one of them: both threads create the group's
	// table (ConsumerOffsetManager.commitOffset). So the offsets are saved one by one before there is anything to lose.
	// Brokers before 5 answer 0 for a queue without a known offset.
	if unknown := !found || offset == 0 && q.conn.old(); unknown && !q.retry {
		if err := q.conn.saveOffset(ctx, c.group, q.queueID, offset); err != nil {
			return err
		}
	}
	q.next = offset
	q.consumed.Store(offset)
	q.told = offset
	return nil
}

const (
	// keepUpAfter is the number of consumed messages of a queue after which the offset is reported at once. Some brokers
	// keep uncommitted messages, and take no more than a certain number.
	keepUpAfter = 100
	// unsaved marks queues with an unknown offset at the broker.
	unsaved = -1
)

// begin records that a request for that offset is in flight. It returns false if the broker has the offset, or if
// another request is in flight.
func (q *queue) begin(offset int64) bool {
	q.saving.Lock()
	defer q.saving.Unlock()
	if q.open != nil || offset == q.told {
		return false
	}
	q.open, q.told = make(chan struct{}), offset
	return true
}

// answer processes the answer to the request in flight.
func (q *queue) answer(_ uint64, r *reply) {
	q.saving.Lock()
	defer q.saving.Unlock()
	if q.failed = r.err; r.err == nil && r.Code != wire.ResSuccess {
		q.failed = refusal(r)
	}
	if q.failed != nil {
		q.told = unsaved
	}
	close(q.open)
	q.open = nil
}

// state returns the channel of the request in flight, if there is one, or the result of the last one.
func (q *queue) state() (open chan struct{}, told int64, failed error) {
	q.saving.Lock()
	defer q.saving.Unlock()
	return q.open, q.told, q.failed
}

// note reports our offset in a queue to the broker, unless it has the offset or has not answered the last report. It
// does not wait; the caller must flush.
func (c *consumer) note(q *queue) {
	offset := q.consumed.Load()
	if !q.begin(offset) {
		return
	}
	err := q.conn.tell(wire.ReqUpdateConsumerOffset, 0, func(b []byte) []byte { // UpdateConsumerOffsetRequestHeader
		b = wire.AppendInt(b, "commitOffset", offset)
		b = wire.AppendField(b, "consumerGroup", c.group)
		b = wire.AppendInt(b, "queueId", int64(q.number))
		return wire.AppendField(b, "topic", q.topic)
	}, nil, call{to: q, limit: pullTime})
	if err != nil {
		q.answer(0, &reply{err: err})
	}
}

// noteAll calls note for all queues, and flushes.
func (c *consumer) noteAll() {
	for _, q := range c.owned {
		c.note(q)
	}
	for _, conn := range c.conns {
		conn.Out.Flush()
	}
}

// keepUp calls note, and flushes, when keepUpAfter messages or more have been consumed since the last time.
func (c *consumer) keepUp(q *queue) {
	if _, told, _ := q.state(); q.consumed.Load()-told >= keepUpAfter {
		c.note(q)
		q.conn.Out.Flush()
	}
}

// save reports our offset in a queue to the broker and returns when it has been saved. No message of the queue may be
// consumed meanwhile.
func (c *consumer) save(ctx context.Context, q *queue) error {
	for tried := false; ; {
		open, told, failed := q.state()
		switch {
		case open != nil:
			select {
			case <-open:
				continue
			case <-ctx.Done():
				return unanswered(ctx, opSave, q.conn.addr)
			}
		case told == q.consumed.Load():
			return nil
		case tried:
			return wrap(opSave, failed)
		}
		tried = true
		c.note(q)
		q.conn.Out.Flush()
	}
}

// reach is how far a queue was delivered to the consumers of a group, all of them of this driver. It distinguishes a
// message that the broker delivers again, because its consumer was cut off before it could report the offset, from a
// message that the broker stored twice: RocketMQ itself marks only messages that were given back. It is safe for
// concurrent use.
type reach struct {
	next   atomic.Int64 // the offset after the last message
	stored atomic.Int64 // when that message was stored, by the broker's clock
}

// again records the delivery of a message, and reports whether it was delivered before. A broker that has lost its last
// messages reuses their offsets, but for messages that are stored later.
func (r *reach) again(m *wire.Message) bool {
	if m.QueueOffset < r.next.Load() && m.Stored <= r.stored.Load() {
		return true
	}
	r.stored.Store(m.Stored)
	r.next.Store(m.QueueOffset + 1)
	return false
}

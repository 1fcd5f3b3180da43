package rocketmq

import wire "github.com/perfmq/perfmq/internal/wire/rocketmq"

// commit commits the offset of a group in a queue.
func (t *topic) commit(q *queue, group string, offset int64) {
	q.commit(group, offset)
	if t.excess(t.s.limits.Limit/keptShare, t.s.limits.LimitBytes/keptShare) > 0 {
		t.trim()
	}
}

// queueOf returns the queue of a request, or answers the request and returns nil.
func (c *conn) queueOf(r *wire.Frame) *queue {
	t := c.s.findTopic(r.Get("topic"))
	if t == nil {
		_ = c.refuseTopic(r, r.Get("topic"))
		return nil
	}
	q := t.queue(r.NumberOr("queueId", -1))
	if q == nil {
		_ = c.refuse(r, wire.ResSystemError, "queueId["+string(r.Get("queueId"))+"] is illegal, topic:["+t.name+"]")
	}
	return q
}

// queryOffset handles QUERY_CONSUMER_OFFSET (ConsumerManageProcessor). The default offset of a complete queue is 0,
// unless the client forbids it.
func (c *conn) queryOffset(r *wire.Frame) error {
	q := c.queueOf(r)
	if q == nil {
		return nil
	}
	offset, ok := q.committed(string(r.Get("consumerGroup")))
	if first, _ := q.limits(); !ok && first == 0 && string(r.Get("setZeroIfNotFound")) != "false" {
		ok = true
	}
	if !ok {
		return c.refuse(r, wire.ResQueryNotFound, "Not found, maybe this group consumer boot first")
	}
	return c.number(r, "offset", offset)
}

// updateOffset handles UPDATE_CONSUMER_OFFSET.
func (c *conn) updateOffset(r *wire.Frame) error {
	q := c.queueOf(r)
	if q == nil {
		return nil
	}
	offset := r.NumberOr("commitOffset", -1)
	g := c.groupOf(r)
	if offset < 0 {
		return c.refuse(r, wire.ResSystemError, "there is no such offset")
	} else if g == nil {
		return c.refuseGroup(r, string(r.Get("consumerGroup")))
	}
	q.t.commit(q, g.name, offset)
	return c.ok(r)
}

// limitOffset handles GET_MAX_OFFSET and GET_MIN_OFFSET; 0 for a queue that does not exist.
func (c *conn) limitOffset(r *wire.Frame) error {
	var first, next int64
	if t := c.s.findTopic(r.Get("topic")); t != nil {
		if q := t.queue(r.NumberOr("queueId", -1)); q != nil {
			first, next = q.limits()
		}
	}
	if r.Code == wire.ReqGetMaxOffset {
		first = next
	}
	return c.number(r, "offset", first)
}

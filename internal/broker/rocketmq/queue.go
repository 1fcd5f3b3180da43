package rocketmq

import (
	"slices"
	"sync"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/transport"
)

// entry is a message in a log.
type entry struct {
	m  *message
	at int64 // the time of storing, in milliseconds since the Unix epoch
}

// queue is one of the logs of a topic. It is safe for concurrent use.
type queue struct {
	t  *topic
	id int

	mu      sync.Mutex
	log     transport.Ring[entry] // offsets are positions
	waiters []*pull
	commits map[string]int64 // the committed offsets of groups
}

// push appends a message and wakes waiting pulls.
func (q *queue) push(m *message, at int64) (offset int64) {
	q.mu.Lock()
	_, offset = q.ends()
	q.log.Push(entry{m, at})
	q.wakeAll()
	return offset
}

// ends returns the first and the next offset; q.mu is held.
func (q *queue) ends() (first, next int64) {
	return int64(q.log.First), int64(q.log.Next) //nolint:gosec // counts of messages
}

// limits returns the first and the next offset.
func (q *queue) limits() (first, next int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ends()
}

// read copies messages from an offset on; if there are none, waiter (unless nil) waits.
func (q *queue) read(buf []entry, offset int64, waiter *pull) (n int, first, next int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first, next = q.ends()
	if offset >= first {
		for ; n < len(buf) && offset+int64(n) < next; n++ {
			buf[n] = *q.log.At(uint64(offset) + uint64(n)) //nolint:gosec // not negative
		}
	}
	if offset == next && waiter != nil {
		q.waiters = append(q.waiters, waiter)
	}
	return n, first, next
}

// forget removes a waiting pull; false if it does not wait.
func (q *queue) forget(p *pull) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiters, p)
	if i < 0 {
		return false
	}
	q.waiters = slices.Delete(q.waiters, i, i+1)
	return true
}

// wakeAll wakes all waiting pulls. The caller has locked q.mu; wakeAll unlocks it.
func (q *queue) wakeAll() {
	waiters := q.waiters
	q.waiters = nil
	q.mu.Unlock()
	for _, p := range waiters {
		p.c.ready(p)
	}
}

// committed returns the committed offset of a group.
func (q *queue) committed(group string) (offset int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	offset, ok = q.commits[group]
	return offset, ok
}

func (q *queue) commit(group string, offset int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.commits == nil {
		q.commits = map[string]int64{}
	}
	q.commits[group] = offset
}

// weight is the accounted size of a message, in bytes.
func (m *message) weight() int64 { return int64(m.Size()) + store.MessageSize }

// commit commits the offset of a group in a queue.
func (t *topic) commit(q *queue, group string, offset int64) {
	q.commit(group, offset)
	t.trim()
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
	if first, _ := q.limits(); !ok && (first > 0 || string(r.Get("setZeroIfNotFound")) == "false") {
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

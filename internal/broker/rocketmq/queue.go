package rocketmq

import (
	"slices"
	"sync"

	"github.com/perfmq/perfmq/internal/broker/store"
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
	ring    []entry // an offset is at that modulo the length, a power of two
	first   int64   // offset of the oldest message
	next    int64   // offset of the next message
	waiters []*pull
	commits map[string]int64 // the committed offsets of groups
}

func (q *queue) at(offset int64) *entry { return &q.ring[offset&int64(len(q.ring)-1)] }

// push appends a message and wakes waiting pulls.
func (q *queue) push(m *message, at int64) (offset int64) {
	q.mu.Lock()
	if q.next-q.first == int64(len(q.ring)) {
		q.resize(max(16, 2*len(q.ring)))
	}
	offset = q.next
	*q.at(offset) = entry{m, at}
	q.next++
	q.wakeAll()
	return offset
}

// resize moves the messages to a ring of n, a sufficient power of two.
func (q *queue) resize(n int) {
	ring := make([]entry, n)
	for o := q.first; o != q.next; o++ {
		ring[o&int64(n-1)] = *q.at(o)
	}
	q.ring = ring
}

// limits returns the first and the next offset.
func (q *queue) limits() (first, next int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.first, q.next
}

// read copies messages from an offset on; if there are none, waiter (unless nil) waits.
func (q *queue) read(buf []entry, offset int64, waiter *pull) (n int, first, next int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if offset >= q.first {
		for ; n < len(buf) && offset+int64(n) < q.next; n++ {
			buf[n] = *q.at(offset + int64(n))
		}
	}
	if offset == q.next && waiter != nil {
		q.waiters = append(q.waiters, waiter)
	}
	return n, q.first, q.next
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

func (q *queue) forgetGroup(group string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.commits, group)
}

// weight is the accounted size of a message, in bytes.
func (m *message) weight() int64 { return int64(m.Size()) + store.MessageSize }

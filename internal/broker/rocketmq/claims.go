package rocketmq

import (
	"math"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// claims say which groups a topic has to keep messages for. See the section Bounds of the package's description.
type claims struct {
	listening []listener
	gone      map[string]bool // groups without members for GoneAfter
	// a group whose next message and last commit are older has none: milliseconds since the Unix epoch
	stuck int64
}

// listener is a group with members that listen to a topic.
type listener struct {
	group string
	since int64 // milliseconds since the Unix epoch
}

// claims returns the claims on a topic as they are now.
func (s *Server) claims(topic string) claims {
	s.mu.RLock()
	groups := make([]*group, 0, len(s.groups))
	for _, g := range s.groups {
		groups = append(groups, g)
	}
	s.mu.RUnlock()
	now := time.Now()
	c := claims{gone: map[string]bool{}, stuck: now.Add(-s.o.StuckAfter).UnixMilli()}
	for _, g := range groups {
		g.mu.Lock()
		switch sub := g.subs[topic]; {
		case len(g.members) == 0:
			if now.UnixNano()-g.seen.Load() > int64(s.o.GoneAfter) {
				c.gone[g.name] = true
			}
		case !g.broadcasting && sub != nil:
			c.listening = append(c.listening, listener{g.name, sub.since})
		}
		g.mu.Unlock()
	}
	return c
}

// alive notes a request for the group.
func (g *group) alive() { g.seen.Store(time.Now().UnixNano()) }

// free returns the offset up to which all groups that have a claim have done with the messages, from first on; held
// is false if none has. left is the offset from which on a group that has none any more was not done; -1 if there is
// no such group.
func (q *queue) free(c *claims) (first, low int64, held bool, left int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	low, left = q.next, -1
	lose := func(offset int64) {
		if left < 0 || offset < left {
			left = offset
		}
	}
	for name, at := range q.commits {
		if c.gone[name] || at.offset < q.next && q.stuck(c, at.offset, at.time) {
			lose(at.offset)
			continue
		}
		low, held = min(low, at.offset), true
	}
	for _, l := range c.listening {
		if _, ok := q.commits[l.group]; ok {
			continue
		}
		if !q.stuck(c, q.first, l.since) {
			return q.first, q.first, true, left // it is about to begin
		}
		lose(q.first)
	}
	return q.first, max(low, q.first), held, left
}

// stuck tells whether neither the message at an offset nor what a group did last is young enough; q.mu is held.
func (q *queue) stuck(c *claims, offset, last int64) bool {
	if offset = max(offset, q.first); offset >= q.next {
		return false
	}
	return max(last, q.at(offset).at) < c.stuck
}

// limits returns those of the topic. When the broker's memory is used up they are what the topic holds less an
// eighth, so that it gives up nothing that a group has a claim to, but all that it only keeps.
func (t *topic) limits() store.Config {
	limits := t.s.limits
	if t.s.store.Tight() {
		limits.Limit = min(limits.Limit, max(1, t.size.Load()*7/8))
		limits.LimitBytes = min(limits.LimitBytes, max(1, t.bytes.Load()*7/8))
	}
	return limits
}

// trim drops what all groups have done with as far as that is more than is kept. At the limits, where no group has a
// claim, it drops the oldest.
func (t *topic) trim() {
	limits := t.limits()
	n := t.excess(limits.Limit/keptShare, limits.LimitBytes/keptShare)
	if n <= 0 {
		return
	}
	c := t.s.claims(t.name)
	queues := *t.queues.Load()
	claimed := false
	for pass := range 2 { // evenly; then what is left from wherever it is
		share := n
		if pass == 0 {
			share = (n + int64(len(queues)) - 1) / int64(len(queues))
		}
		for _, q := range queues {
			first, low, held, left := q.free(&c)
			claimed = claimed || held
			if left < 0 {
				left = math.MaxInt64
			}
			if until := min(low, first+min(share, n)); held && until > first {
				n -= t.drop(q, until, left)
			}
		}
	}
	if !claimed && (t.size.Load() >= limits.Limit || t.bytes.Load() >= limits.LimitBytes) {
		t.dropOldest(queues, &c, limits)
	} else if t.excess(t.s.limits.Limit*7/8, t.s.limits.LimitBytes*7/8) > 0 {
		return // not worth while yet
	}
	if t.wantRoom.Load() && !t.full() {
		t.TellRoom()
	}
}

// dropOldest makes room in a topic that no group has a claim to, a bit more than needed so as not to be called for
// each message.
func (t *topic) dropOldest(queues []*queue, c *claims, limits store.Config) {
	const slack = 64
	n := max(1, t.excess(limits.Limit-limits.Limit/slack, limits.LimitBytes-limits.LimitBytes/slack))
	for n > 0 {
		share, before := (n+int64(len(queues))-1)/int64(len(queues)), n
		for _, q := range queues {
			first, _, _, left := q.free(c)
			n -= t.drop(q, first+min(share, n), max(left, 0))
		}
		if n == before {
			return // all the rest is delayed
		}
	}
}

// drop drops the messages of a queue before an offset, and counts as dropped those from the offset left on.
func (t *topic) drop(q *queue, until, left int64) int64 {
	dropped, bytes, unseen := q.drop(until, left)
	t.size.Add(-dropped)
	t.bytes.Add(-bytes)
	t.s.store.Return(bytes)
	t.dropped.Add(uint64(unseen)) //nolint:gosec // a count
	if t.gone.Load() {
		t.forget()
	}
	return dropped
}

// lookAgain is how often a topic with waiting senders looks whether a claim has ended.
const lookAgain = time.Second

// watch looks at the claims now and then while a sender waits for room; t.mu is held.
func (t *topic) watch() {
	if t.watched || t.gone.Load() || len(t.room) == 0 {
		return
	}
	t.watched = true
	if t.watcher == nil {
		t.watcher = time.AfterFunc(lookAgain, t.look)
	} else {
		t.watcher.Reset(lookAgain)
	}
}

func (t *topic) look() {
	if t.s.store.Stalled() == nil {
		if t.trim(); !t.full() {
			t.TellRoom() // there may be room, if not so much that trim thinks it worth while
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = false
	t.watch()
}

// trimNowAndThen trims unless it has done so a moment ago; it is for senders that do not wait.
func (t *topic) trimNowAndThen() {
	now := time.Now().UnixNano()
	if last := t.tried.Load(); now-last >= int64(lookAgain) && t.tried.CompareAndSwap(last, now) {
		t.trim()
	}
}

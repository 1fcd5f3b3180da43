package rocketmq

import (
	"time"
)

// claims say for which groups a topic has to keep messages, see [topic.trim].
type claims struct {
	listening []string        // groups with members that listen to the topic
	gone      map[string]bool // groups without members for GoneAfter
}

// claims returns the claims on a topic as they are now.
func (s *Server) claims(topic string) claims {
	c := claims{gone: map[string]bool{}}
	for _, g := range s.allGroups() {
		g.mu.Lock()
		switch {
		case len(g.members) == 0:
			c.gone[g.name] = time.Now().UnixNano()-g.seen.Load() > int64(s.o.GoneAfter)
		case !g.broadcasting && g.subs[topic] != nil:
			c.listening = append(c.listening, g.name)
		}
		g.mu.Unlock()
	}
	return c
}

// alive notes a request for the group.
func (g *group) alive() { g.seen.Store(time.Now().UnixNano()) }

// drop removes messages that all groups with a claim have done with, or the oldest ones where no group has a claim, if
// it may; most is how many. unseen are those of them that a group was not done with, or that no group has seen.
func (q *queue) drop(c *claims, mayLose bool, most int64) (dropped, bytes, unseen int64, claimed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	low, seen := q.next, q.next
	if len(q.commits) == 0 {
		seen = q.first
	}
	for name, offset := range q.commits {
		seen = min(seen, offset)
		if !c.gone[name] {
			low, claimed = min(low, offset), true
		}
	}
	for _, name := range c.listening {
		if _, ok := q.commits[name]; !ok { // it is about to begin
			low, claimed = q.first, true
		}
	}
	if !claimed && !mayLose {
		return 0, 0, 0, false
	}
	for ; dropped < most && q.first < low; dropped++ {
		if q.first >= seen {
			unseen++
		}
		e := q.at(q.first)
		bytes += e.m.weight()
		*e = entry{}
		q.first++
	}
	const small = 4096
	if live := int(q.next - q.first); len(q.ring) > small && live < len(q.ring)/8 {
		q.resize(len(q.ring) / 4)
	}
	return dropped, bytes, unseen, claimed
}

// limits returns those of the topic. When the broker's memory is used up they are what the topic holds less an
// eighth, so that it gives up nothing that a group has a claim to, but all that it only keeps.
func (t *topic) limits() (messages, bytes int64) {
	messages, bytes = t.s.limits.Limit, t.s.limits.LimitBytes
	if t.s.store.Tight() {
		messages, bytes = min(messages, t.size.Load()*7/8), min(bytes, t.bytes.Load()*7/8)
	}
	return max(1, messages), max(1, bytes)
}

// trim drops what all groups have done with as far as that is more than is kept. At the limits, where no group has a
// claim, it drops the oldest, a bit more than needed so as not to be called for each message.
func (t *topic) trim() {
	limit, limitBytes := t.limits()
	n := t.excess(limit/keptShare, limitBytes/keptShare)
	if n <= 0 {
		return
	}
	c := t.s.claims(t.name)
	if claimed := t.shed(n, &c, false); !claimed && (t.size.Load() >= limit || t.bytes.Load() >= limitBytes) {
		const slack = 64
		t.shed(max(1, t.excess(limit-limit/slack, limitBytes-limitBytes/slack)), &c, true)
	}
	if t.room.Wanted() && t.excess(t.s.limits.Limit*7/8, t.s.limits.LimitBytes*7/8) <= 0 && !t.full() {
		t.room.Tell()
	}
}

// shed drops n messages, of all queues evenly as far as they have them. It returns whether a group has a claim.
func (t *topic) shed(n int64, c *claims, mayLose bool) (claimed bool) {
	queues := *t.queues.Load()
	for before := n + 1; 0 < n && n < before; {
		share := (n + int64(len(queues)) - 1) / int64(len(queues))
		before = n
		for _, q := range queues {
			dropped, bytes, unseen, held := q.drop(c, mayLose, min(n, share))
			claimed = claimed || held
			n -= dropped
			t.size.Add(-dropped)
			t.bytes.Add(-bytes)
			t.s.store.Return(bytes)
			t.dropped.Add(uint64(unseen)) //nolint:gosec // a count
		}
	}
	if t.gone.Load() {
		t.forget()
	}
	return claimed
}

// trimNowAndThen trims unless it has done so a moment ago.
func (t *topic) trimNowAndThen() {
	now := time.Now().UnixNano()
	if last := t.tried.Load(); now-last >= int64(time.Second) && t.tried.CompareAndSwap(last, now) {
		t.trim()
	}
}

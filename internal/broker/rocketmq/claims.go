package rocketmq

import "time"

// goneAfter is the time from the last request to the end of the claim of a group without members: brokers take a silent
// client for dead then.
const goneAfter = 2 * time.Minute

// claims returns the groups with another claim on a topic than their commits: true for members that subscribe to it,
// false without members for goneAfter.
func (s *Server) claims(topic string) map[string]bool {
	list := map[string]bool{}
	for _, g := range s.allGroups() {
		g.mu.Lock()
		switch {
		case len(g.members) == 0 && time.Now().UnixNano()-g.lastRequest.Load() > int64(goneAfter):
			list[g.name] = false
		case len(g.members) > 0 && !g.broadcasting && g.subs[topic] != nil:
			list[g.name] = true
		}
		g.mu.Unlock()
	}
	return list
}

// drop removes up to most messages: consumed by all groups with a claim or, without claims and with mayLose, the oldest
// ones. unread counts the messages that no group, or only some groups with an offset, have consumed.
func (q *queue) drop(claims map[string]bool, mayLose bool, most int64) (dropped, bytes, unread int64, claimed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first, low := q.ends()
	read := low
	if len(q.commits) == 0 {
		read = first
	}
	for name, offset := range q.commits {
		read = min(read, offset)
		if claim, ok := claims[name]; claim || !ok {
			low, claimed = min(low, offset), true
		}
	}
	for name, claim := range claims {
		if _, ok := q.commits[name]; claim && !ok { // a new group, before its first commit
			low, claimed = first, true
		}
	}
	if !claimed && !mayLose {
		return 0, 0, 0, false
	}
	for ; dropped < most && first < low; dropped++ {
		if first >= read {
			unread++
		}
		first++
		e := q.log.Take(q.log.First)
		bytes += e.m.weight()
	}
	return dropped, bytes, unread, claimed
}

// limits returns the limits of the topic. When the broker's memory is full, they are 7/8 of the topic's current size:
// a trim then drops all messages without a claim.
func (t *topic) limits() (messages, bytes int64) {
	messages, bytes = t.s.limits.Limit, t.s.limits.LimitBytes
	if t.s.store.Tight() {
		messages, bytes = min(messages, t.size.Load()*7/8), min(bytes, t.bytes.Load()*7/8)
	}
	return max(1, messages), max(1, bytes)
}

// trim drops consumed messages beyond the kept share. At the limits, without claims, it drops the oldest messages, and
// a few more, so that not each message needs a trim.
func (t *topic) trim() {
	limit, limitBytes := t.limits()
	n := t.excess(limit/keptShare, limitBytes/keptShare)
	if n <= 0 {
		return
	}
	c := t.s.claims(t.name)
	if claimed := t.drop(n, c, false); !claimed && (t.size.Load() >= limit || t.bytes.Load() >= limitBytes) {
		const slack = 64
		t.drop(max(1, t.excess(limit-limit/slack, limitBytes-limitBytes/slack)), c, true)
	}
	if t.room.Waiting() && t.excess(t.s.limits.Limit*7/8, t.s.limits.LimitBytes*7/8) <= 0 && t.hasRoom() {
		t.room.Notify()
	}
}

// drop drops n messages, evenly from all queues. It returns whether a group has a claim.
func (t *topic) drop(n int64, claims map[string]bool, mayLose bool) (claimed bool) {
	queues := *t.queues.Load()
	for before := n + 1; 0 < n && n < before; {
		share := (n + int64(len(queues)) - 1) / int64(len(queues))
		before = n
		for _, q := range queues {
			dropped, bytes, unread, queueClaimed := q.drop(claims, mayLose, min(n, share))
			claimed = claimed || queueClaimed
			n -= dropped
			t.size.Add(-dropped)
			t.bytes.Add(-bytes)
			t.s.store.Return(bytes)
			t.s.dropped.Add(uint64(unread)) //nolint:gosec // a count
		}
	}
	if t.gone.Load() {
		t.free()
	}
	return claimed
}

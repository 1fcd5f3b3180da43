package rocketmq

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// group is a consumer group. It stays, with its offsets, until it is deleted.
type group struct {
	name        string
	lastRequest atomic.Int64 // in nanoseconds since the Unix epoch

	subsSize atomic.Int64 // accounted memory of the subscriptions, in bytes

	mu      sync.Mutex
	members map[member]bool
	subs    map[string]*subscription // by topic
	locks   map[wire.Queue]lock      // of queues without the broker

	notifying bool // the members will be notified
}

// member is a client of a group on one connection.
type member struct {
	c  *conn
	g  *group
	id string
}

// subscription is immutable in a group.
type subscription struct {
	kind, expression string
	version          int64
	filter           store.Filter
	err              error // of the expression
}

func newSubscription(kind, expression string, version int64) *subscription {
	s := &subscription{kind: kind, expression: expression, version: version}
	s.filter, s.err = newFilter(kind, expression)
	return s
}

func (s *Server) allGroups() []*group {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.groups))
}

// findGroup returns a group, or nil. It does not retain the name.
func (s *Server) findGroup(name []byte) *group {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.groups[string(name)]
}

// groupOf finds or creates the group of a request, and renews its claims; nil for an illegal name.
func (c *conn) groupOf(r *wire.Frame) *group {
	name := r.Get("consumerGroup")
	g := c.s.findGroup(name)
	if g == nil {
		g = c.s.makeGroup(string(name))
	}
	if g != nil {
		g.touch()
	}
	return g
}

// touch records a request of the group.
func (g *group) touch() { g.lastRequest.Store(time.Now().UnixNano()) }

// makeGroup finds or creates a group; nil for an illegal name, too many groups or a lack of memory.
func (s *Server) makeGroup(name string) *group {
	if !legalName(name) {
		return nil
	}
	s.mu.Lock()
	g := s.groups[name]
	if g == nil && len(s.groups) < maxGroups && s.store.Reserve(groupSize) {
		g = &group{
			name: name, members: map[member]bool{}, subs: map[string]*subscription{}, locks: map[wire.Queue]lock{},
		}
		g.touch()
		s.groups[name] = g
	}
	s.mu.Unlock()
	return g
}

// deleteGroup handles DELETE_SUBSCRIPTIONGROUP: it deletes a group and its offsets.
func (c *conn) deleteGroup(r *wire.Frame) error {
	s, name := c.s, string(r.Get("groupName"))
	s.mu.Lock()
	if g := s.groups[name]; g != nil {
		s.store.Return(groupSize + g.subsSize.Swap(0))
	}
	delete(s.groups, name)
	s.mu.Unlock()
	for _, t := range s.allTopics() {
		for _, q := range *t.queues.Load() {
			q.mu.Lock()
			delete(q.commits, name)
			q.mu.Unlock()
		}
	}
	return c.ok(r)
}

func (g *group) subscription(topic string) *subscription {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.subs[topic]
}

// ids returns the client IDs of the group.
func (g *group) ids() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	ids := make([]string, 0, len(g.members))
	for m := range g.members {
		ids = append(ids, m.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// heartbeat handles HEART_BEAT: the groups of a client.
func (c *conn) heartbeat(r *wire.Frame) error {
	var data wire.Heartbeat
	if !c.readJSON(r, &data) {
		return nil
	}
	for _, p := range data.Producers {
		if legalName(p.Group) {
			c.addProducer(p.Group)
		}
	}
	if len(data.Producers) > 0 {
		c.setClient(data.ClientID)
	}
	for i := range data.Consumers {
		d := &data.Consumers[i]
		g := c.s.makeGroup(d.Group)
		if g == nil || c.s.makeTopic(wire.RetryPrefix+d.Group, 1) == nil || len(data.ClientID) > maxClientID ||
			!g.admits(c.s, d) {
			return c.refuseGroup(r, d.Group)
		}
		m := member{c, g, data.ClientID}
		c.members[m], c.consumes = true, true
		if g.join(m, d) {
			g.notifyMembers()
		}
	}
	return c.ok(r)
}

// maxClientID is the longest client ID, in bytes.
const maxClientID = 1024

// admits accounts for the memory of a member's subscriptions, which replace the previous ones.
func (g *group) admits(s *Server, d *wire.ConsumerData) bool {
	size := int64(0)
	for i := range d.Subscriptions {
		size += int64(len(d.Subscriptions[i].Topic)+len(d.Subscriptions[i].Expression)) + groupSize
	}
	if !s.store.Reserve(size) {
		return false
	}
	s.store.Return(g.subsSize.Swap(size))
	return true
}

// join adds m and replaces the group's subscriptions; it returns whether that changed anything.
func (g *group) join(m member, d *wire.ConsumerData) (changed bool) {
	g.touch()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.members[m] {
		g.members[m], changed = true, true
	}
	subs := map[string]*subscription{}
	for _, s := range d.Subscriptions {
		old := g.subs[s.Topic]
		if old != nil && (old.version >= s.Version || old.kind == s.Kind && old.expression == s.Expression) {
			same := *old // pulls may use the old one
			same.version = max(old.version, s.Version)
			subs[s.Topic] = &same
			continue
		}
		subs[s.Topic], changed = newSubscription(s.Kind, s.Expression, s.Version), true
	}
	changed = changed || len(subs) != len(g.subs)
	g.subs = subs
	return changed
}

// leaveGroup ends a membership of the connection, if there is one.
func (c *conn) leaveGroup(m member) {
	delete(c.members, m)
	if !m.g.remove(m) {
		return
	}
	c.forWriter(func() { c.left = append(c.left, m.g) })
	m.g.notifyMembers()
}

// lock reserves a queue for one client, for lockTime (RocketMQ's RebalanceLockManager).
type lock struct {
	client string
	at     time.Time
}

const lockTime = time.Minute

// remove removes a member and the client's locks.
func (g *group) remove(m member) bool {
	g.touch()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.members[m] {
		return false
	}
	delete(g.members, m)
	maps.DeleteFunc(g.locks, func(_ wire.Queue, l lock) bool { return l.client == m.id })
	return true
}

// notifyPause is the time before a notification of a group, per member.
const notifyPause = 100 * time.Microsecond

// notifyMembers notifies the members to rebalance, a moment later. If each of a thousand clients that come together
// made the others rebalance, that would be a million notifications.
func (g *group) notifyMembers() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.notifying {
		g.notifying = true
		time.AfterFunc(time.Duration(len(g.members))*notifyPause, g.notify)
	}
}

// notify sends the notification (NOTIFY_CONSUMER_IDS_CHANGED) to all members.
func (g *group) notify() {
	g.mu.Lock()
	g.notifying = false
	members := slices.Collect(maps.Keys(g.members))
	g.mu.Unlock()
	for _, m := range members {
		m.c.push(func(w *wire.Writer) {
			w.Begin(wire.ReqNotifyConsumerIDsChanged, wire.FlagOneWay, 0, "")
			w.Text("consumerGroup", g.name)
			w.End(0)
		})
	}
}

// unregister handles UNREGISTER_CLIENT.
func (c *conn) unregister(r *wire.Frame) error {
	if name := r.Get("producerGroup"); len(name) > 0 {
		c.removeProducer(string(name))
	}
	if g := c.s.findGroup(r.Get("consumerGroup")); g != nil {
		c.leaveGroup(member{c, g, string(r.Get("clientID"))})
	}
	return c.ok(r)
}

// maxProducerGroups bounds the producer groups of a connection.
const maxProducerGroups = 1024

// addProducer adds the connection to the producers of a group.
func (c *conn) addProducer(name string) {
	if c.producerGroups[name] || len(c.producerGroups) == maxProducerGroups {
		return
	}
	c.producerGroups[name] = true
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.producers[name] == nil {
		s.producers[name] = map[*conn]bool{}
	}
	s.producers[name][c] = true
}

func (c *conn) removeProducer(name string) {
	delete(c.producerGroups, name)
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.producers[name], c); len(s.producers[name]) == 0 {
		delete(s.producers, name)
	}
}

// consumerList handles GET_CONSUMER_LIST_BY_GROUP.
func (c *conn) consumerList(r *wire.Frame) error {
	var ids []string
	if g := c.s.findGroup(r.Get("consumerGroup")); g != nil {
		ids = g.ids()
	}
	if len(ids) == 0 {
		return c.refuse(r, wire.ResSystemError, "no consumer for this group, "+string(r.Get("consumerGroup")))
	}
	return c.json(r, wire.Consumers{ClientIDs: ids})
}

// lockQueues handles LOCK_BATCH_MQ and UNLOCK_BATCH_MQ.
func (c *conn) lockQueues(r *wire.Frame) error {
	take := r.Code == wire.ReqLockBatchMQ
	var data wire.Lock
	if !c.readJSON(r, &data) {
		return nil
	}
	g := c.s.makeGroup(data.Group)
	if g == nil {
		return c.refuseGroup(r, data.Group)
	}
	taken, now := []wire.Queue{}, time.Now()
	g.mu.Lock()
	for _, q := range data.Queues {
		key := wire.Queue{Topic: q.Topic, Queue: q.Queue}
		if l, locked := g.locks[key]; locked && l.client != data.ClientID && now.Sub(l.at) < lockTime {
			continue
		}
		if !take {
			delete(g.locks, key)
			continue
		}
		if t := c.s.findTopic([]byte(q.Topic)); t != nil && t.queue(int64(q.Queue)) != nil {
			g.locks[key] = lock{data.ClientID, now}
			taken = append(taken, q)
		}
	}
	g.mu.Unlock()
	if !take {
		return c.ok(r)
	}
	return c.json(r, wire.Locked{Queues: taken})
}

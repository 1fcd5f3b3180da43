package rocketmq

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// group is a group of consumers. It stays, with where it stands, until it is deleted.
type group struct {
	name string
	seen atomic.Int64 // time of its last request, in nanoseconds since the Unix epoch

	subsSize atomic.Int64 // bytes of its subscriptions in the account of the broker's memory

	mu           sync.Mutex
	members      map[member]bool
	subs         map[string]*subscription // by topic
	locks        map[lockedQueue]lock
	broadcasting bool // the members keep account themselves of where they stand
}

// member is a client in a group, on one connection.
type member struct {
	c  *conn
	id string
}

// membership is one of a connection's.
type membership struct {
	g  *group
	id string // of the client
}

// subscription does not change once it is in a group.
type subscription struct {
	kind, expression string
	version          int64
	filter           *filter
	err              error // the expression cannot be read
}

func newSubscription(kind, expression string, version int64) *subscription {
	s := &subscription{kind: kind, expression: expression, version: version}
	s.filter, s.err = newFilter(kind, expression)
	return s
}

type lockedQueue struct {
	topic string
	queue int
}

// lock gives a queue to one client, for a minute (RebalanceLockManager).
type lock struct {
	client string
	at     time.Time
}

const lockTime = time.Minute

func (s *Server) allGroups() []*group {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.groups))
}

// findGroup returns a group, nil if there is none. The name is not retained.
func (s *Server) findGroup(name []byte) *group {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.groups[string(name)]
}

// groupOf finds the group of a request, or makes it, and notes that it is alive; nil if its name is not legal.
func (c *conn) groupOf(r *wire.Frame) *group {
	name := r.Get("consumerGroup")
	g := c.s.findGroup(name)
	if g == nil {
		g = c.s.makeGroup(string(name))
	}
	if g != nil {
		g.alive()
	}
	return g
}

// makeGroup returns a group, which it makes if need be, with the topic of what it gives back; nil if the name is not
// legal or there are too many.
func (s *Server) makeGroup(name string) *group {
	if !legalName(name) {
		return nil
	}
	s.mu.Lock()
	g := s.groups[name]
	if g == nil && len(s.groups) < maxGroups && s.store.Reserve(groupSize) {
		g = &group{name: name, members: map[member]bool{}, subs: map[string]*subscription{}, locks: map[lockedQueue]lock{}}
		g.alive()
		s.groups[name] = g
	}
	s.mu.Unlock()
	return g
}

// deleteGroup deletes a group and where it stands.
func (s *Server) deleteGroup(name string) {
	s.mu.Lock()
	if g := s.groups[name]; g != nil {
		s.store.Return(groupSize + g.subsSize.Swap(0))
	}
	delete(s.groups, name)
	topics := slices.Collect(maps.Values(s.topics))
	s.mu.Unlock()
	for _, t := range topics {
		for _, q := range *t.queues.Load() {
			q.forgetGroup(name)
		}
		t.trimIfWanted()
	}
}

// trimIfWanted makes room when it is needed and a group has gone.
func (t *topic) trimIfWanted() {
	if t.room.Wanted() {
		t.trim()
	}
}

func (g *group) subscription(topic string) *subscription {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.subs[topic]
}

// ids returns the clients in the group.
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

// heartbeat handles HEART_BEAT: a client tells its groups.
func (c *conn) heartbeat(r *wire.Frame) error {
	var data wire.Heartbeat
	if err := wire.UnmarshalJSON(r.Body, &data); err != nil {
		return c.refuse(r, wire.ResSystemError, "the body of a heartbeat cannot be read: "+err.Error())
	}
	for _, p := range data.Producers {
		if legalName(p.Group) {
			c.lead(p.Group)
		}
	}
	for i := range data.Consumers {
		d := &data.Consumers[i]
		g := c.s.makeGroup(d.Group)
		if g == nil || c.s.makeTopic(wire.RetryPrefix+d.Group, 1) == nil {
			return c.refuse(r, wire.ResSystemError,
				"the name of a consumer group is illegal or too long, or there are too many: "+d.Group)
		}
		if len(data.ClientID) > maxClientID || !g.admits(c.s, d) {
			return c.refuse(r, wire.ResSystemError, "the client's ID is too long, or its subscriptions are too many")
		}
		c.joined[membership{g, data.ClientID}], c.consumes = true, true
		if g.join(member{c, data.ClientID}, d) {
			for _, sub := range d.Subscriptions {
				c.s.join(sub.Topic)
			}
			g.tell()
		}
	}
	return c.ok(r)
}

// maxClientID is the length of the longest ID of a client, in bytes.
const maxClientID = 1024

// admits counts the subscriptions that a member brings against the broker's memory. They take the place of those
// before.
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

// join makes m a member and takes over its subscriptions; it returns whether that changed anything.
func (g *group) join(m member, d *wire.ConsumerData) (changed bool) {
	g.alive()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.members[m] {
		g.members[m], changed = true, true
	}
	g.broadcasting = d.Model == wire.Broadcasting
	subs := map[string]*subscription{}
	for _, s := range d.Subscriptions {
		old := g.subs[s.Topic]
		if old != nil && (old.version >= s.Version || old.kind == s.Kind && old.expression == s.Expression) {
			same := *old // pulls may be reading the old one
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

// leaveGroup ends a membership, if the connection has it.
func (c *conn) leaveGroup(m membership) {
	delete(c.joined, m)
	if !m.g.part(member{c, m.id}) {
		return
	}
	c.mu.Lock()
	c.left = append(c.left, m.g)
	c.mu.Unlock()
	c.wakeWriter()
	m.g.tell()
	c.s.groupLeft(m.g)
}

// part ends a membership and the client's locks.
func (g *group) part(m member) bool {
	g.alive()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.members[m] {
		return false
	}
	delete(g.members, m)
	for q, l := range g.locks {
		if l.client == m.id {
			delete(g.locks, q)
		}
	}
	return true
}

// tell tells the members that there are others now, so that they share the queues out anew.
func (g *group) tell() {
	g.mu.Lock()
	members := slices.Collect(maps.Keys(g.members))
	g.mu.Unlock()
	for _, m := range members {
		m.c.push(func(w *wire.Writer) {
			w.Begin(m.c.codec, wire.ReqNotifyConsumerIDsChanged, wire.FlagOneWay, 0, "")
			w.Text("consumerGroup", g.name)
			w.End(0)
		})
	}
}

// unregister handles UNREGISTER_CLIENT.
func (c *conn) unregister(r *wire.Frame) error {
	id := string(r.Get("clientID"))
	if name := r.Get("producerGroup"); len(name) > 0 {
		c.unlead(string(name))
	}
	if name := r.Get("consumerGroup"); len(name) > 0 {
		if g := c.s.findGroup(name); g != nil {
			c.leaveGroup(membership{g, id})
		}
	}
	return c.ok(r)
}

// groupLeft makes room in topics where a group had a claim only by being there, and leaves queues to others.
func (s *Server) groupLeft(g *group) {
	g.mu.Lock()
	names := slices.Collect(maps.Keys(g.subs))
	g.mu.Unlock()
	for _, name := range names {
		if t := s.findTopic([]byte(name)); t != nil {
			t.trimIfWanted()
			s.join(name)
		}
	}
}

// leaveAll takes the connection out of all groups.
func (c *conn) leaveAll() {
	for m := range c.joined {
		c.leaveGroup(m)
	}
	for name := range c.leads {
		c.unlead(name)
	}
}

// lead notes that the connection has a producer of that group.
func (c *conn) lead(name string) {
	const most = 1024
	if c.leads[name] || len(c.leads) == most {
		return
	}
	c.leads[name] = true
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.producers[name] == nil {
		s.producers[name] = map[*conn]bool{}
	}
	s.producers[name][c] = true
}

func (c *conn) unlead(name string) {
	delete(c.leads, name)
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
func (c *conn) lockQueues(r *wire.Frame, take bool) error {
	var data wire.Lock
	if err := wire.UnmarshalJSON(r.Body, &data); err != nil {
		return c.refuse(r, wire.ResSystemError, "the body cannot be read: "+err.Error())
	}
	g := c.s.makeGroup(data.Group)
	if g == nil {
		return c.refuse(r, wire.ResSystemError, "the name of the consumer group is illegal")
	}
	now := time.Now()
	taken := []wire.Queue{}
	g.mu.Lock()
	for _, q := range data.Queues {
		key := lockedQueue{q.Topic, q.Queue}
		l, locked := g.locks[key]
		if locked && l.client != data.ClientID && now.Sub(l.at) < lockTime {
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

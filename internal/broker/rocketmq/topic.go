package rocketmq

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// The accounted memory of topics, queues and groups, in bytes.
const (
	topicSize = 1 << 10
	queueSize = 256
	groupSize = 512
)

// topic is a topic of RocketMQ: a number of logs, and a [store.Sink] of the store's topic of the same name.
type topic struct {
	s      *Server
	name   string
	id     int64 // in Server.byID
	dest   *store.Destination
	detach func()
	gone   atomic.Bool

	queues atomic.Pointer[[]*queue]
	turn   atomic.Uint32

	size, bytes atomic.Int64 // of the messages
	own         atomic.Int64 // accounted memory without messages, in bytes
	delayed     store.Delayed[*message]
	trimmed     atomic.Int64 // the last trim by Room, in nanoseconds since the Unix epoch

	mu sync.Mutex // for changes of queues
}

// addQueues adds queues, if there are fewer than n.
func (t *topic) addQueues(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queues := append([]*queue(nil), *t.queues.Load()...)
	for len(queues) < n {
		queues = append(queues, &queue{t: t, id: len(queues)})
		t.own.Add(queueSize)
		t.s.store.Charge(queueSize)
	}
	t.queues.Store(&queues)
}

// nextQueue returns the numbers of the queues in turn.
func (t *topic) nextQueue() int { return int(t.turn.Add(1) % uint32(len(*t.queues.Load()))) }

// queue returns a queue by its number, or nil.
func (t *topic) queue(id int64) *queue {
	queues := *t.queues.Load()
	if id < 0 || id >= int64(len(queues)) {
		return nil
	}
	return queues[id]
}

func (t *topic) Put(m *store.Message) {
	c, ok := m.Content.(*message)
	if !ok {
		c = convert(m, t.name)
	}
	t.put(c, m.NotBefore)
}

// put stores a message at once or with its delay.
func (t *topic) put(m *message, notBefore int64) {
	weight := m.weight()
	size, bytes := t.size.Add(1), t.bytes.Add(weight)
	t.s.store.Charge(weight)
	now := time.Now()
	if notBefore > now.UnixNano() {
		t.delayed.Add(notBefore, m, func(m *message) { t.append(m, time.Now().UnixMilli()) })
	} else {
		t.append(m, now.UnixMilli())
	}
	if size >= t.s.limits.Limit || bytes >= t.s.limits.LimitBytes {
		t.trim()
	}
	if t.gone.Load() {
		t.free()
	}
}

// free returns the topic's memory. Late users of a deleted topic call it again.
func (t *topic) free() {
	t.size.Store(0)
	t.s.store.Return(t.bytes.Swap(0) + t.own.Swap(0))
}

func (t *topic) append(m *message, at int64) {
	if t.name == replyTopic {
		t.s.pushReply(m, at)
		t.size.Add(-1)
		t.bytes.Add(-m.weight())
		t.s.store.Return(m.weight())
		return
	}
	queues := *t.queues.Load()
	i := m.queue
	if i < 0 || i >= len(queues) {
		i = t.nextQueue()
	}
	offset := queues[i].push(m, at)
	if m.place.Load() == 0 {
		m.place.CompareAndSwap(0, offset+1)
	}
}

// hasRoom reports whether the topic is below its limits, and the broker has room.
func (t *topic) hasRoom() bool {
	return t.size.Load() < t.s.limits.Limit && t.bytes.Load() < t.s.limits.LimitBytes &&
		!t.s.store.Full() && !t.s.store.Tight()
}

// Room implements [store.Sink]. A topic without room is trimmed, at most once a second: a claim may have ended.
func (t *topic) Room() bool {
	if t.hasRoom() {
		return true
	}
	now := time.Now().UnixNano()
	if last := t.trimmed.Load(); now-last >= int64(time.Second) && t.trimmed.CompareAndSwap(last, now) {
		t.trim()
	}
	return t.hasRoom()
}

// keptShare is the part of the limits up to which consumed messages stay, for future groups.
const keptShare = 8

// end detaches the topic from the store and wakes all pulls.
func (t *topic) end() {
	t.gone.Store(true)
	t.detach()
	t.delayed.Stop(func(*message) {})
	for _, q := range *t.queues.Load() {
		q.mu.Lock()
		q.wakeAll()
	}
	t.free()
}

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
		case len(g.members) > 0 && g.subs[topic] != nil:
			list[g.name] = true
		}
		g.mu.Unlock()
	}
	return list
}

// drop removes the messages that all groups with a claim have consumed or, without claims and with mayLose, the oldest
// eighth. unread counts the messages that no group, or only some groups with an offset, have consumed.
func (q *queue) drop(claims map[string]bool, mayLose bool) (dropped, bytes, unread int64, claimed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first, low := q.ends()
	read, oldest := low, first+(low-first+7)/8
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
	switch {
	case claimed:
	case mayLose:
		low = oldest
	default:
		return 0, 0, 0, false
	}
	for ; first < low; first++ {
		if first >= read {
			unread++
		}
		dropped++
		e := q.log.Take(q.log.First)
		bytes += e.m.weight()
	}
	return dropped, bytes, unread, claimed
}

// trim drops the consumed messages of a topic above the kept share. Without claims it drops the oldest eighth of a
// topic at its limits, or of every topic when the broker's memory is full.
func (t *topic) trim() {
	over := func(share int64) bool {
		l := &t.s.limits
		return t.size.Load() >= max(1, l.Limit/share) || t.bytes.Load() >= max(1, l.LimitBytes/share) ||
			t.s.store.Tight()
	}
	if !over(keptShare) {
		return
	}
	c := t.s.claims(t.name)
	if claimed := t.drop(c, false); !claimed && over(1) {
		t.drop(c, true)
	}
}

// drop drops messages of all queues. It returns whether a group has a claim.
func (t *topic) drop(claims map[string]bool, mayLose bool) (claimed bool) {
	for _, q := range *t.queues.Load() {
		dropped, bytes, unread, queueClaimed := q.drop(claims, mayLose)
		claimed = claimed || queueClaimed
		t.size.Add(-dropped)
		t.bytes.Add(-bytes)
		t.s.store.Return(bytes)
		t.s.count(func(n *Stats) { n.Dropped += uint64(unread) }) //nolint:gosec // a count
	}
	if t.gone.Load() {
		t.free()
	}
	return claimed
}

const (
	brokerName  = "perfmq"
	clusterName = "DefaultCluster"
)

func (c *conn) broker() wire.BrokerData {
	return wire.BrokerData{Cluster: clusterName, Name: brokerName, Addresses: map[string]string{wire.MasterID: c.addr}}
}

// route handles GET_ROUTEINFO_BY_TOPIC: all queues are on this broker. It creates topics used by other protocols, and
// the topic for replies and retry topics: clients ask for the latter before they join the group, and again only half a
// minute later.
func (c *conn) route(r *wire.Frame) error {
	name := string(r.Get("topic"))
	queues := c.s.o.Queues
	t := c.s.findTopic([]byte(name))
	switch {
	case t != nil:
	case strings.HasPrefix(name, wire.RetryPrefix), name == replyTopic:
		t = c.s.makeTopic(name, 1)
	case c.s.store.Find(driver.Destination{Kind: driver.Topic, Name: name}) != nil:
		t = c.s.makeTopic(name, queues)
	}
	switch {
	case t != nil:
		queues = len(*t.queues.Load())
	case name != wire.DefaultTopic:
		return c.refuse(r, wire.ResTopicNotExist, "No topic route info in name server for the topic: "+name)
	}
	return c.json(r, wire.Route{
		Brokers: []wire.BrokerData{c.broker()},
		Filters: map[string][]string{},
		Queues:  []wire.QueueData{{Broker: brokerName, Read: queues, Write: queues, Perm: wire.PermRead | wire.PermWrite}},
	})
}

// clusterInfo handles GET_BROKER_CLUSTER_INFO.
func (c *conn) clusterInfo(r *wire.Frame) error {
	return c.json(r, wire.Cluster{
		Brokers: map[string]wire.BrokerData{brokerName: c.broker()}, Clusters: map[string][]string{clusterName: {brokerName}},
	})
}

// createTopic handles UPDATE_AND_CREATE_TOPIC. The larger number of queues is used for both reads and writes.
func (c *conn) createTopic(r *wire.Frame) error {
	name := string(r.Get("topic"))
	read, write := r.NumberOr("readQueueNums", int64(c.s.o.Queues)), r.NumberOr("writeQueueNums", int64(c.s.o.Queues))
	if name == wire.DefaultTopic || !legalName(name) || read < 1 || write < 1 || read > maxQueues || write > maxQueues {
		return c.refuse(r, wire.ResSystemError,
			"The specified topic ["+name+"] is illegal, or it should have 1 to "+strconv.Itoa(maxQueues)+" queues")
	}
	t := c.s.makeTopic(name, int(write))
	if t == nil {
		return c.refuse(r, wire.ResSystemError, "there are too many topics")
	}
	t.addQueues(int(max(read, write)))
	return c.ok(r)
}

// checkClient handles CHECK_CLIENT_CONFIG: it checks the filter.
func (c *conn) checkClient(r *wire.Frame) error {
	var data wire.ClientCheck
	if !c.readJSON(r, &data) {
		return nil
	}
	if _, err := newFilter(data.Subscription.Kind, data.Subscription.Expression); err != nil {
		return c.refuse(r, wire.ResSubscriptionParseFailed, err.Error())
	}
	return c.ok(r)
}

// topicGroups handles QUERY_TOPIC_CONSUME_BY_WHO: the groups with a subscription or a committed offset.
func (c *conn) topicGroups(r *wire.Frame) error {
	t := c.s.findTopic(r.Get("topic"))
	list := []string{}
	if t != nil {
		for _, g := range c.s.allGroups() {
			committed := func(q *queue) bool { _, ok := q.committed(g.name); return ok }
			if g.subscription(t.name) != nil || slices.ContainsFunc(*t.queues.Load(), committed) {
				list = append(list, g.name)
			}
		}
	}
	slices.Sort(list)
	return c.json(r, wire.Groups{Groups: list})
}

// runtimeInfo handles GET_BROKER_RUNTIME_INFO: product and version.
func (c *conn) runtimeInfo(r *wire.Frame) error {
	return c.json(r, map[string]any{"table": map[string]string{
		"brokerVersionDesc": store.Product + "/" + transport.Version, "brokerVersion": strconv.Itoa(wire.Version),
	}})
}

// levels are the delays of the setting messageDelayLevel, from level 1.
const levels = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

// brokerConfig handles GET_BROKER_CONFIG: the one setting that clients need.
func (c *conn) brokerConfig(r *wire.Frame) error {
	return c.body(r, []byte("messageDelayLevel="+levels+"\n"))
}

// delayOf returns the delay of a level; 0 for none.
func delayOf(level int64) time.Duration {
	if level <= 0 {
		return 0
	}
	list := strings.Fields(levels)
	d, _ := time.ParseDuration(list[min(level, int64(len(list)))-1])
	return d
}

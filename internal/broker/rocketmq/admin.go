package rocketmq

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	brokerName  = "perfmq"
	clusterName = "DefaultCluster"
)

func (c *conn) broker() wire.BrokerData {
	return wire.BrokerData{Cluster: clusterName, Name: brokerName, Addresses: map[string]string{wire.MasterID: c.addr}}
}

// route handles GET_ROUTEINFO_BY_TOPIC: all queues are on this broker. It creates topics used by other protocols, and
// retry topics: clients ask for those before they join the group, and again only half a minute later.
func (c *conn) route(r *wire.Frame) error {
	name := string(r.Get("topic"))
	queues := c.s.o.Queues
	t := c.s.findTopic([]byte(name))
	switch {
	case t != nil:
	case strings.HasPrefix(name, wire.RetryPrefix):
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

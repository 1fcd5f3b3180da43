package rocketmq

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// topics is the driver's knowledge of its topics. The holder of turn may look and change; a channel, so that waiting
// for it ends with a context.
type topics struct {
	turn    chan struct{}
	routes  map[string]*route
	created []string
	groups  []queueGroup
}

// queueGroup is a group that makes a queue of a topic.
type queueGroup struct{ topic, group string }

// route holds the brokers that have queues of a topic.
type route struct {
	brokers []routeBroker // with at least one queue, by name
	seen    time.Time     // when it was looked up
}

// queues returns the queues of the topic that can be read.
func (r *route) queues(topic string) map[queueID]bool {
	all := map[queueID]bool{}
	for _, b := range r.brokers {
		for n := range b.read {
			all[queueID{topic, b.name, n}] = true
		}
	}
	return all
}

type routeBroker struct {
	name        string
	addr        string
	read, write int // numbers of queues
}

const (
	// maxQueues is the largest number of queues of a topic on one broker. Each takes memory in every producer and
	// consumer.
	maxQueues = 4096
	// maxBrokers is the largest number of brokers of a topic. Each is connected to.
	maxBrokers = 256
	// maxTopicQueues is the largest number of queues of a topic on all brokers.
	maxTopicQueues = 4 * maxQueues

	lookAtNameServer = "look at the topic (mqadmin topicRoute -t TOPIC)"
)

// checkNumbers holds the numbers of queues against their limit.
func checkNumbers(op string, q *wire.QueueData) error {
	for _, n := range []int{q.Read, q.Write} {
		if n < 0 || n > maxQueues {
			return driver.Errorf(driver.ClassProtocol, op, lookAtNameServer,
				"the name server says that the topic has %d queues on broker %s; "+
					"perfmq accepts at most %d", n, transport.Clip(q.Broker, maxName), maxQueues)
		}
	}
	return nil
}

// routeOf returns the route of a topic, which it creates if need be and if it may.
func (d *rocketDriver) routeOf(ctx context.Context, topic string) (*route, error) {
	t := &d.topics
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, driver.Errorf(driver.ClassTimeout, "look up topic "+topic, "", "%w", ctx.Err())
	}
	if r := t.routes[topic]; r != nil {
		return r, nil
	}
	a := d.cfg.newCaller()
	ns, err := d.nameServer(ctx)
	if err != nil {
		return nil, err
	}
	defer ns.close()
	r, err := d.lookUp(ctx, a, ns, topic)
	if driver.ClassOf(err) == driver.ClassNotFound && d.cfg.Options.CreateTopic {
		r, err = d.create(ctx, a, ns, topic)
	} else if err == nil {
		err = d.checkQueues(topic, r)
	}
	if err != nil {
		return nil, err
	}
	t.routes[topic] = r
	return r, nil
}

// noteGroup remembers a group that is to go with its topic. The default group of a queue is noted by its producers,
// too, whose driver may be another than that of the consumers.
func (d *rocketDriver) noteGroup(topic, group string) {
	d.topics.turn <- struct{}{}
	defer func() { <-d.topics.turn }()
	g := queueGroup{topic, group}
	if !slices.Contains(d.topics.groups, g) {
		d.topics.groups = append(d.topics.groups, g)
	}
}

// nameServer connects to the first name server that can be reached, beginning with that of the last time; each gets an
// equal share of the time.
func (d *rocketDriver) nameServer(ctx context.Context) (*conn, error) {
	deadline, _ := ctx.Deadline()
	hosts := d.cfg.Target.Hosts
	order := make([]int, len(hosts))
	for i := range order {
		order[i] = (int(d.goodServer.Load()) + i) % len(hosts)
	}
	return transport.First(ctx, hosts, order, time.Until(deadline),
		func(ctx context.Context, host transport.Endpoint) (*conn, error) {
			c, err := d.dial(ctx, host.String(), nil)
			if err == nil {
				d.goodServer.Store(int32(slices.Index(hosts, host))) //nolint:gosec // of a list that a person typed
			}
			return c, err
		})
}

func (d *rocketDriver) lookUp(ctx context.Context, a *caller, ns *conn, topic string) (*route, error) {
	op := "look up topic " + topic
	answer, err := a.must(ctx, ns, op, wire.ReqGetRouteInfoByTopic,
		[]field{{"topic", topic}, {"acceptStandardJsonOnly", "true"}}, nil)
	if err != nil {
		return nil, err
	}
	var data wire.Route
	if err := wire.UnmarshalJSON(answer.Body, &data); err != nil {
		return nil, driver.Errorf(driver.ClassProtocol, op, notRocketMQ, "read the name server's answer: %w", err)
	}
	r, total := &route{seen: time.Now()}, 0
	for _, q := range data.Queues {
		if err := checkNumbers(op, &q); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(data.Brokers, func(b wire.BrokerData) bool { return b.Name == q.Broker })
		if i < 0 || data.Brokers[i].Addresses[wire.MasterID] == "" {
			continue // without its master a broker takes no messages
		}
		b := routeBroker{name: q.Broker, addr: d.brokerAddress(data.Brokers[i])}
		if q.Perm&wire.PermRead != 0 {
			b.read = q.Read
		}
		if q.Perm&wire.PermWrite != 0 {
			b.write = q.Write
		}
		r.brokers = append(r.brokers, b)
		if total += max(b.read, b.write); len(r.brokers) > maxBrokers || total > maxTopicQueues {
			return nil, driver.Errorf(driver.ClassProtocol, op, lookAtNameServer,
				"the name server says that the topic has %d queues or more "+
					"on %d brokers; perfmq accepts at most %d on %d", total, len(data.Queues), maxTopicQueues, maxBrokers)
		}
	}
	slices.SortFunc(r.brokers, func(x, y routeBroker) int { return strings.Compare(x.name, y.name) })
	if len(r.brokers) == 0 {
		return nil, driver.Errorf(driver.ClassNotFound, op, "are the brokers up?", "no broker with this topic is up")
	}
	return r, nil
}

func (d *rocketDriver) brokerAddress(b wire.BrokerData) string {
	if d.cfg.Options.BrokerAddress != "" {
		return d.cfg.Options.BrokerAddress
	}
	return b.Addresses[wire.MasterID]
}

// checkQueues refuses a topic with another number of queues than was asked for.
func (d *rocketDriver) checkQueues(topic string, r *route) error {
	want := d.cfg.Options.Queues
	for _, b := range r.brokers {
		if want != 0 && (b.write != want || b.read != want) {
			return driver.Errorf(driver.ClassOther, "look up topic "+topic,
				"leave out -o queues, use another topic, or delete this one",
				"topic %s has %d queues on broker %s, not %d", topic, b.write, b.name, want)
		}
	}
	return nil
}

// masters returns the addresses of all masters of the cluster.
func (d *rocketDriver) masters(ctx context.Context, a *caller, ns *conn) ([]string, error) {
	const op = "list the brokers"
	answer, err := a.must(ctx, ns, op, wire.ReqGetBrokerClusterInfo, nil, nil)
	if err != nil {
		return nil, err
	}
	var info wire.Cluster
	if err := wire.UnmarshalJSON(answer.Body, &info); err != nil {
		return nil, driver.Errorf(driver.ClassProtocol, op, notRocketMQ, "read the name server's answer: %w", err)
	}
	var list []string
	for _, b := range info.Brokers {
		if b.Addresses[wire.MasterID] != "" {
			list = append(list, d.brokerAddress(b))
		}
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) == 0 {
		return nil, driver.Errorf(driver.ClassConnect, op, "start a broker, or wait until it has registered",
			"the name server knows no broker")
	}
	return list, nil
}

// onMasters calls f with a connection to each master.
func (d *rocketDriver) onMasters(ctx context.Context, a *caller, ns *conn, f func(*conn) error) error {
	masters, err := d.masters(ctx, a, ns)
	if err != nil {
		return err
	}
	for _, addr := range masters {
		c, err := d.dial(ctx, addr, nil)
		if err != nil {
			return err
		}
		err = f(c)
		c.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// create creates a topic on all masters and waits until the name server knows it.
func (d *rocketDriver) create(ctx context.Context, a *caller, ns *conn, topic string) (*route, error) {
	queues := strconv.Itoa(defaultQueues)
	if n := d.cfg.Options.Queues; n > 0 {
		queues = strconv.Itoa(n)
	}
	masters := 0
	err := d.onMasters(ctx, a, ns, func(c *conn) error {
		masters++
		_, err := a.must(ctx, c, "create topic "+topic, wire.ReqUpdateAndCreateTopic, []field{
			{"topic", topic},
			{"defaultTopic", wire.DefaultTopic},
			{"readQueueNums", queues},
			{"writeQueueNums", queues},
			{"perm", strconv.Itoa(wire.PermRead | wire.PermWrite)},
			{"topicFilterType", "SINGLE_TAG"},
			{"topicSysFlag", "0"},
			{"order", "false"},
		}, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.topics.created = append(d.topics.created, topic)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := d.lookUp(ctx, a, ns, topic)
		if err == nil && len(r.brokers) >= masters || err != nil && driver.ClassOf(err) != driver.ClassNotFound {
			return r, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, driver.Errorf(driver.ClassTimeout, "create topic "+topic,
				"do its brokers register with this name server?",
				"the name server does not know it yet: %w", ctx.Err())
		}
	}
}

// deleteTopics deletes the topics that this driver created, with the groups of its queues.
func (d *rocketDriver) deleteTopics(ctx context.Context) error {
	if len(d.topics.created) == 0 {
		return nil
	}
	ctx, cancel := d.opening(ctx)
	defer cancel()
	var errs []error
	for _, topic := range d.topics.created {
		for _, g := range d.topics.groups {
			if g.topic == topic {
				errs = append(errs, d.deleteGroup(ctx, g.group))
			}
		}
		errs = append(errs, d.deleteTopic(ctx, topic))
	}
	return errors.Join(errs...)
}

// deleteTopic deletes topics on the brokers and, in case one of those is away, at the name servers.
func (d *rocketDriver) deleteTopic(ctx context.Context, names ...string) error {
	a := d.cfg.newCaller()
	ns, err := d.nameServer(ctx)
	if err != nil {
		return err
	}
	defer ns.close()
	err = d.onMasters(ctx, a, ns, func(c *conn) error { return deleteOn(ctx, a, c, wire.ReqDeleteTopicInBroker, names) })
	deadline, _ := ctx.Deadline()
	for i, host := range d.cfg.Target.Hosts {
		each, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(d.cfg.Target.Hosts)-i+1))
		c, dialErr := d.dial(each, host.String(), nil)
		cancel()
		if dialErr != nil {
			continue // a name server that is away forgets topics by itself
		}
		err = errors.Join(err, deleteOn(ctx, a, c, wire.ReqDeleteTopicInNamesrv, names))
		c.close()
	}
	return err
}

func deleteOn(ctx context.Context, a *caller, c *conn, code int, names []string) error {
	var errs []error
	for _, name := range names {
		_, err := a.must(ctx, c, "delete topic "+name, code, []field{{"topic", name}}, nil)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deleteGroup deletes a consumer group, where it stands, and its topics for redelivery.
func (d *rocketDriver) deleteGroup(ctx context.Context, group string) error {
	a := d.cfg.newCaller()
	ns, err := d.nameServer(ctx)
	if err != nil {
		return err
	}
	defer ns.close()
	err = d.onMasters(ctx, a, ns, func(c *conn) error {
		_, err := a.must(ctx, c, "delete group "+group, wire.ReqDeleteSubscriptionGroup, []field{
			{"groupName", group}, {"cleanOffset", "true"}, {"removeOffset", "true"}, // as 4.9 calls it
		}, nil)
		return err
	})
	return errors.Join(err, d.deleteTopic(ctx, wire.RetryPrefix+group, wire.DeadPrefix+group))
}

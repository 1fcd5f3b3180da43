package rocketmq

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// route holds the brokers that have queues of a topic.
type route struct {
	brokers []routeBroker // with at least one queue, sorted by name
	seen    time.Time     // when it was looked up
}

type routeBroker struct {
	name        string
	addr        string
	read, write int // numbers of queues
}

// readable returns the number of readable queues.
func (r *route) readable() (n int) {
	for _, b := range r.brokers {
		n += b.read
	}
	return n
}

const (
	// maxQueues is the largest number of queues of a topic to create on one broker.
	maxQueues = 4096
	// maxTopicQueues is the largest number of queues of a topic on all brokers. Each takes memory in every producer and
	// consumer.
	maxTopicQueues = 4 * maxQueues
	// maxBrokers is the largest number of brokers of a topic. The driver connects to each.
	maxBrokers = 256
	// lookUpEvery is the time that a route is used for further producers and consumers.
	lookUpEvery = 30 * time.Second
)

// routeOf returns the route of a topic. It creates the topic if need be and allowed.
func (d *rocketDriver) routeOf(ctx context.Context, topic string) (*route, error) {
	if err := d.routing.take(ctx, "look up topic "+topic); err != nil {
		return nil, err
	}
	defer d.routing.give()
	if r := d.routes[topic]; r != nil && time.Since(r.seen) < lookUpEvery {
		return r, nil
	}
	s := d.newConns(nil)
	defer s.close()
	r, err := s.lookUp(ctx, topic)
	if driver.ClassOf(err) == driver.ClassNotFound && d.cfg.Options.CreateTopic {
		r, err = s.create(ctx, topic, "")
	} else if err == nil && !strings.HasSuffix(topic, wire.ReplySuffix) { // the broker's own
		err = d.checkQueues(topic, r)
	}
	if err != nil {
		return nil, err
	}
	d.routes[topic] = r
	return r, nil
}

// lookUp asks for the route of a topic.
func (s *conns) lookUp(ctx context.Context, topic string) (*route, error) {
	op := "look up topic " + topic
	ns, err := s.nameServer(ctx)
	if err != nil {
		return nil, err
	}
	var data wire.Route
	err = ns.query(ctx, op, wire.ReqGetRouteInfoByTopic, []string{"topic", topic, "acceptStandardJsonOnly", "true"},
		nil, &data)
	if err != nil {
		return nil, err
	}
	r, total := &route{seen: time.Now()}, 0
	for _, q := range data.Queues {
		n := max(q.Read, q.Write)
		if min(q.Read, q.Write) < 0 || n > maxTopicQueues-total || len(r.brokers) == maxBrokers {
			return nil, driver.Errorf(driver.ClassProtocol, op, "look at the topic (mqadmin topicRoute -t TOPIC)",
				"broker %s has %d queues to read and %d to write; perfmq takes %d on %d brokers",
				transport.Clip(q.Broker, maxName), q.Read, q.Write, maxTopicQueues, maxBrokers)
		}
		i := slices.IndexFunc(data.Brokers, func(b wire.BrokerData) bool { return b.Name == q.Broker })
		if i < 0 || data.Brokers[i].Addresses[wire.MasterID] == "" {
			continue // without its master a broker accepts no messages
		}
		b := routeBroker{name: q.Broker, addr: s.d.brokerAddress(data.Brokers[i])}
		if q.Perm&wire.PermRead != 0 {
			b.read = q.Read
		}
		if q.Perm&wire.PermWrite != 0 {
			b.write = q.Write
		}
		r.brokers = append(r.brokers, b)
		total += n
	}
	slices.SortFunc(r.brokers, func(x, y routeBroker) int { return strings.Compare(x.name, y.name) })
	r.brokers = slices.CompactFunc(r.brokers, func(x, y routeBroker) bool { return x.name == y.name })
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

// checkQueues refuses a topic if its number of queues differs from the requested one.
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

// create creates a topic on all masters, for a type of messages if one is given, and waits until the
// name server knows it.
func (s *conns) create(ctx context.Context, topic, messages string) (*route, error) {
	op := "create topic " + topic
	queues := strconv.Itoa(cmp.Or(s.d.cfg.Options.Queues, defaultQueues))
	attributes := ""
	if messages != "" {
		attributes = "+message.type=" + messages
	}
	masters := 0
	err := s.onMasters(ctx, func(c *conn) error {
		masters++
		_, err := c.must(ctx, op, wire.ReqUpdateAndCreateTopic, []string{
			"topic", topic, "defaultTopic", wire.DefaultTopic,
			"readQueueNums", queues, "writeQueueNums", queues, "perm", strconv.Itoa(wire.PermRead | wire.PermWrite),
			"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false",
			"attributes", attributes,
		}, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	for {
		r, err := s.lookUp(ctx, topic)
		if err == nil && len(r.brokers) >= masters || err != nil && driver.ClassOf(err) != driver.ClassNotFound {
			return r, err
		}
		if ctx.Err() != nil {
			return nil, driver.Errorf(driver.ClassTimeout, op, "do its brokers register with this name server?",
				"the name server does not know it yet: %w", ctx.Err())
		}
		await(ctx, 5*time.Millisecond, nil)
	}
}

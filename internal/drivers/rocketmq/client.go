package rocketmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	heartbeatEvery = 30 * time.Second // brokers drop clients after 120 s
	heartbeatLimit = 10 * time.Second
)

// client is a client of the RocketMQ cluster: an id, and a connection to each broker that it needs.
type client struct {
	*conns
	id   string
	life context.Context // ends with the client
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu        sync.Mutex
	consumers map[string]*consumer // by group; nil: it is being opened
	producers []*producer          // all of one group
	replies   *replyConsumer       // nil: there is none
}

func newClient(d *rocketDriver, spec driver.Connection) *client {
	name := cmp.Or(spec.ClientID, spec.Name)
	c := &client{
		id:        fmt.Sprintf("perfmq-%s@%s", name, randomID()),
		consumers: map[string]*consumer{},
	}
	c.conns = d.newConns(c)
	c.life, c.end = context.WithCancel(context.Background())
	d.keeper.add(c)
	return c
}

// Dead implements [transport.Shared].
func (c *client) Dead() bool { return slices.ContainsFunc(c.all(), (*conn).Dead) }

// End implements [transport.Shared].
func (c *client) End(ctx context.Context) {
	for _, conn := range c.all() {
		conn.Out.Drain(ctx)
	}
	c.d.keeper.remove(c)
	c.end()
	c.wg.Wait() // then no more connections are opened
	c.close()
}

// reserve reserves the client for a member of the group; it returns false if it already has one.
func (c *client) reserve(group string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.consumers[group]; taken {
		return false
	}
	c.consumers[group] = nil
	return true
}

// join makes the client a member of the producers' group.
func (c *client) join(p *producer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.producers = append(c.producers, p)
}

// part removes the producer; it returns whether it was the client's last one, and no replies are awaited.
func (c *client) part(p *producer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.producers = slices.DeleteFunc(c.producers, func(other *producer) bool { return other == p })
	return len(c.producers) == 0 && c.replies == nil
}

// members returns the open producers and consumers.
func (c *client) members() (producers []*producer, consumers []*consumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.consumers {
		if m != nil {
			consumers = append(consumers, m)
		}
	}
	return slices.Clone(c.producers), consumers
}

// serve handles a request of a broker. It must not block.
func (c *client) serve(r *reply) {
	switch r.Code {
	case wire.ReqNotifyConsumerIDsChanged:
		c.mu.Lock()
		member := c.consumers[string(r.Get("consumerGroup"))]
		c.mu.Unlock()
		if member != nil {
			member.kick()
		}
	case wire.ReqCheckTransactionState:
		c.checkTransaction(r)
	case wire.ReqPushReplyMessageToClient:
		c.takeReply(r)
	}
}

// ended is called once for each connection, when it has ended. A consumer ends if it loses one of its brokers, a
// producer if it loses the last one.
func (c *client) ended(conn *conn) {
	producers, consumers := c.members()
	for _, p := range producers {
		if p.brokers.Load() == nil { // it is being opened
			continue
		}
		if err := p.reachable(""); err != nil {
			p.End(err)
		}
	}
	for _, m := range consumers {
		if slices.Contains(m.conns, conn) {
			m.fail(conn.Why())
		}
	}
	c.losesReplies(conn)
}

// beatAll sends a heartbeat to each broker. A broker that does not answer in time counts as lost.
func (c *client) beatAll() {
	ctx, cancel := context.WithTimeout(c.life, heartbeatLimit)
	defer cancel()
	for _, conn := range c.all() {
		if err := c.beat(ctx, conn); err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			conn.Fail(silent("heartbeat", heartbeatLimit))
		}
	}
}

// beat reports the client's groups to a broker.
func (c *client) beat(ctx context.Context, conn *conn) error {
	data := wire.Heartbeat{ClientID: c.id, Producers: []wire.ProducerData{}, Consumers: []wire.ConsumerData{}}
	producers, consumers := c.members()
	c.mu.Lock()
	replies := c.replies != nil // brokers push them to clients with producers
	c.mu.Unlock()
	switch {
	case len(producers) > 0:
		data.Producers = append(data.Producers, wire.ProducerData{Group: producers[0].group})
	case replies:
		data.Producers = append(data.Producers, wire.ProducerData{Group: producerGroup})
	}
	for _, m := range consumers {
		data.Consumers = append(data.Consumers, m.data())
	}
	c.identify(conn)
	_, err := conn.must(ctx, "send a heartbeat to "+conn.addr, wire.ReqHeartBeat, nil, data)
	return err
}

// unregister reports to a broker that this client leaves a group.
func (c *client) unregister(ctx context.Context, conn *conn, key, group string) error {
	_, err := conn.must(ctx, "leave group "+group, wire.ReqUnregisterClient, []string{"clientID", c.id, key, group},
		nil)
	return err
}

// identify asks a broker for its version, concurrently with other requests: GET_BROKER_RUNTIME_INFO
// (AdminBrokerProcessor.getBrokerRuntimeInfo). A driver asks only one broker, and again with the next heartbeat if it
// refuses, as one does that has just started.
func (c *client) identify(conn *conn) {
	d := c.d
	if product, _ := d.Broker(); product != "" || !d.identifying.CompareAndSwap(false, true) {
		return
	}
	c.wg.Go(func() {
		defer d.identifying.Store(false)
		ctx, cancel := context.WithTimeout(c.life, heartbeatLimit)
		defer cancel()
		var info struct {
			Table map[string]string `json:"table"`
		}
		err := conn.query(ctx, "ask for version", wire.ReqGetBrokerRuntimeInfo, nil, nil, &info)
		if version := info.Table["brokerVersionDesc"]; err == nil && version != "" {
			d.Tell(productOf(version))
		}
	})
}

// productOf parses brokerVersionDesc, a name of MQVersion.Version: V5_3_1. The embedded broker puts its name in front.
func productOf(desc string) (product, version string) {
	if product, version, named := strings.Cut(desc, "/"); named {
		return product, version
	}
	return "RocketMQ", strings.ReplaceAll(strings.TrimPrefix(desc, "V"), "_", ".")
}

// old reports whether the server, by its last answer, is RocketMQ before 5.
func (c *conn) old() bool {
	v := c.version.Load()
	return v > 0 && v < wire.Version5
}

// fitDelay adapts the delay of messages to the brokers that have got a heartbeat. Brokers before 5 delay by levels
// alone: a time equal to a level becomes that level, others are refused.
func (p *producer) fitDelay(ctx context.Context, conns []*conn, spec *driver.ProducerSpec) error {
	old := slices.IndexFunc(conns, (*conn).old)
	if spec.Delay == 0 || old < 0 {
		return nil
	}
	levels, err := conns[old].delayLevels(ctx)
	if err != nil {
		return err
	}
	if p.level = slices.Index(levels, spec.Delay) + 1; p.level == 0 {
		return driver.Errorf(driver.ClassUnsupported, p.op, fmt.Sprintf("use one of %v", levels),
			"RocketMQ before 5 delays by levels, of which %s is none", spec.Delay)
	}
	return p.prepare(spec)
}

// delayLevels returns the messageDelayLevel of a broker's configuration, such as 1s 5s 10s 30s 1m 2m 1h 1d. The first
// is level 1; a level that is not understood is 0.
func (c *conn) delayLevels(ctx context.Context) (levels []time.Duration, err error) {
	answer, err := c.must(ctx, "ask for delays", wire.ReqGetBrokerConfig, nil, nil)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(answer.Body)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key == "messageDelayLevel" {
			for _, text := range strings.Fields(value) {
				levels = append(levels, delayOf(text))
			}
		}
	}
	return levels, nil
}

// delayOf parses a delay in the brokers' form; it returns 0 if the text is not a delay.
func delayOf(text string) time.Duration {
	unit := time.Duration(1)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		text, unit = days+"h", 24
	}
	const most = 10_000 * time.Hour
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		return 0
	}
	return d * unit
}

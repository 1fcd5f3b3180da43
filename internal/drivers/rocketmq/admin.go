package rocketmq

import (
	"context"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Admin looks up and creates topics, and sees to groups, for another client. It is safe for concurrent use.
type Admin struct{ d *rocketDriver }

// NewAdmin returns an Admin.
func NewAdmin(target transport.Target, connectTimeout time.Duration) *Admin {
	return &Admin{newDriver(transport.Settings[Options]{
		Target: target, ConnectTimeout: connectTimeout, MaxBody: driver.DefaultMaxBody,
		Options: Options{CreateTopic: true},
	})}
}

// Topic has the queues of a topic to which messages can be sent, and the address of a name server that knows them.
type Topic struct {
	NameServer string
	Queues     []Queue

	admin *Admin
	route *route
}

// Queue is a queue of a topic.
type Queue struct {
	Broker string // its name
	Number int
}

// Topic looks up a topic, which it creates if need be.
func (a *Admin) Topic(ctx context.Context, name string) (*Topic, error) {
	ctx, cancel := a.d.opening(ctx)
	defer cancel()
	r, err := a.d.routeOf(ctx, name)
	if err != nil {
		return nil, err
	}
	ns, err := a.d.asking.nameServer(ctx)
	if err != nil {
		return nil, err
	}
	t := &Topic{NameServer: ns.Raw.RemoteAddr().String(), admin: a, route: r}
	for _, b := range r.brokers {
		for number := range b.write {
			t.Queues = append(t.Queues, Queue{b.name, number})
		}
	}
	if len(t.Queues) == 0 {
		return nil, notWritable("look up topic "+name, name)
	}
	return t, nil
}

// Ask waits for each broker's answer to a question without an effect.
func (t *Topic) Ask(ctx context.Context) error {
	d := t.admin.d
	ctx, cancel := d.opening(ctx)
	defer cancel()
	for _, b := range t.route.brokers {
		conn, err := d.asking.connect(ctx, b.addr, new(driver.Connection))
		if err == nil {
			_, err = conn.call(ctx, wire.ReqGetBrokerRuntimeInfo, nil, nil)
		}
		if err != nil {
			d.asking.close() // it may be broken without a sign
			return err
		}
	}
	return nil
}

// Close closes all connections.
func (a *Admin) Close() { a.d.asking.close() }

// TypedTopic creates a topic for a type of messages, unless it exists.
func (a *Admin) TypedTopic(ctx context.Context, name, messages string) error {
	ctx, cancel := a.d.opening(ctx)
	defer cancel()
	if err := a.d.routing.take(ctx, "look up topic "+name); err != nil {
		return err
	}
	defer a.d.routing.give()
	_, err := a.d.asking.lookUp(ctx, name)
	if driver.ClassOf(err) == driver.ClassNotFound {
		_, err = a.d.asking.create(ctx, name, messages)
	}
	return err
}

// Group creates a group, unless it exists, and determines where a new one starts in each queue of a topic: at the next
// message sent, or at the first one.
func (a *Admin) Group(ctx context.Context, topic, group string, fromNext bool) error {
	ctx, cancel := a.d.opening(ctx)
	defer cancel()
	if err := a.d.routing.take(ctx, "look up topic "+topic); err != nil {
		return err
	}
	defer a.d.routing.give()
	r, err := a.d.asking.lookUp(ctx, topic)
	if err != nil {
		return err
	}
	m := &membership{group: group, fromNext: fromNext}
	for _, b := range r.brokers {
		c, err := a.d.asking.connect(ctx, b.addr, new(driver.Connection))
		if err == nil {
			_, err = c.ensureGroup(ctx, group)
		}
		if err != nil {
			return err
		}
		for n := range b.read {
			id := queueID{topic, b.name, n}
			at, found, err := m.stands(ctx, c, id, false)
			if err == nil && !found {
				err = c.saveOffset(ctx, group, id, at)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// RemoveGroup deletes a group that has no members, and the topics in which the brokers gave out its messages again.
func (a *Admin) RemoveGroup(ctx context.Context, topic, group string) error {
	ctx, cancel := a.d.leaving(ctx)
	defer cancel()
	if err := a.d.deleteUnused(ctx, group); err != nil {
		return err
	}
	for _, between := range []string{"_", "+"} { // KeyBuilder.buildPopRetryTopicV1 and V2
		name := wire.RetryPrefix + group + between + topic
		if _, err := a.d.asking.lookUp(ctx, name); err != nil {
			continue
		}
		if err := a.d.asking.onMasters(ctx, func(c *conn) error {
			_, err := c.must(ctx, "delete topic "+name, wire.ReqDeleteTopicInBroker, []string{"topic", name}, nil)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Inspect is that of a driver of RocketMQ; the option group is as there.
func (a *Admin) Inspect(
	ctx context.Context, group string, destinations []driver.Destination,
) ([]driver.DestinationCount, error) {
	a.d.cfg.Options.Group = group
	return a.d.Inspect(ctx, destinations)
}

package rocketmq

import (
	"context"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Admin looks up and creates topics for another client. It is safe for concurrent use.
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
		conn, err := d.asking.connect(ctx, b.addr)
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

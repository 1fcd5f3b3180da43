package rocketmq

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// rocketDriver is a [driver.Driver]: a set of clients by connection key and its knowledge of topics.
type rocketDriver struct {
	transport.Identity
	cfg    transport.Settings[Options]
	id     string // of the group of its transactional producers
	pool   transport.Pool[*client]
	mem    transport.Buffers
	closed atomic.Bool

	routing     turn              // to look up or create a topic: only the first user of a topic does that
	routes      map[string]*route // of topics, from the last look-up; guarded by routing
	goodServer  atomic.Int32      // index of the last name server that could be reached
	identifying atomic.Bool       // a broker is being asked for its version
	keeper      keeper

	// Of Inspect: connections of its own, which stay open between calls, and the routes as they were at the first call.
	asking  *conns
	counted map[string]*route

	open     OpenTransactions
	groups   sync.Map     // name -> *groupState: of groups that consumers share, or that may have to be deleted
	members  atomic.Int64 // open consumers
	filtered sync.Map     // driver.Destination: destinations with filtering consumers
}

func newDriver(cfg transport.Settings[Options]) *rocketDriver {
	d := &rocketDriver{
		cfg: cfg, id: randomID(), routing: newTurn(), routes: map[string]*route{},
	}
	d.asking, d.counted = d.newConns(nil), map[string]*route{}
	d.pool.Open = func(_ context.Context, spec driver.Connection) (*client, error) { return newClient(d, spec), nil }
	return d
}

// newSigner returns a signer, for one goroutine at a time.
func (d *rocketDriver) newSigner() *wire.Signer {
	return wire.NewSigner(d.cfg.Target.User, d.cfg.Target.Password)
}

// opening bounds all the steps of opening a producer or consumer.
func (d *rocketDriver) opening(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.cfg.ConnectTimeout)
}

// leaving bounds all the steps of an orderly exit from a broker, which may hold pulls meanwhile.
func (d *rocketDriver) leaving(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.cfg.ConnectTimeout+heldTime)
}

// randomID returns a text for names that must be unique among runs.
func randomID() string { return strings.ToLower(rand.Text()[:10]) }

// acquire returns the client of that connection and adds a user. A member of a consumer group needs a client that no
// other member of the group uses: brokers identify members by their clients.
func (d *rocketDriver) acquire(
	ctx context.Context, spec driver.Connection, group string,
) (*transport.Lease[*client], error) {
	key := spec.Key
	for i := 2; ; i++ {
		lease, err := d.pool.Acquire(ctx, spec)
		if err != nil || group == "" || lease.Conn.reserve(group) {
			return lease, err
		}
		lease.Release(ctx)
		spec.Key = key + "\x00" + strconv.Itoa(i)
	}
}

// attaching returns stages for the connections of an opening that begins now, and a function that reports the rest of
// its time: routes are looked up before there is a connection.
func attaching(stages driver.Stages) (connections driver.Stages, attached func()) {
	if stages == nil {
		return nil, func() {}
	}
	began, others := time.Now(), new(atomic.Int64)
	return func(s driver.Stage, took time.Duration) {
			others.Add(int64(took))
			stages(s, took)
		}, func() {
			stages(driver.StageAttach, time.Since(began)-time.Duration(others.Load()))
		}
}

// Close implements [driver.Driver].
func (d *rocketDriver) Close(ctx context.Context) error {
	again := d.closed.Swap(true)
	d.asking.close()
	_ = d.pool.Close(ctx)
	if !again {
		d.removeDeparted(ctx)
	}
	return nil
}

// join connects and makes the consumer a member of its group.
func (c *consumer) join(ctx context.Context, op string, spec *driver.ConsumerSpec) error {
	r, err := c.d.routeOf(ctx, c.topic)
	if err != nil {
		return err
	}
	if c.lease, err = c.d.acquire(ctx, spec.Connection, c.group); err != nil {
		return err
	}
	c.client = c.lease.Conn
	c.d.members.Add(1)
	c.shared.keep()
	if err := c.subscribe(ctx, spec, r); err != nil {
		return wrap(op, err)
	}
	return nil
}

// subscribe reports the consumer to the brokers and fixes the offset at which a new group starts in each queue.
func (c *consumer) subscribe(ctx context.Context, spec *driver.ConsumerSpec, r *route) error {
	c.route, c.explicit = r, true
	for _, b := range r.brokers {
		conn, err := c.client.connect(ctx, b.addr, &spec.Connection)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
		created, err := conn.ensureGroup(ctx, c.group)
		if err != nil {
			return err
		}
		c.explicit = c.explicit && created
		if c.filter.Kind != wire.KindTag {
			if err := c.checkFilter(ctx, conn); err != nil {
				return err
			}
		}
	}
	c.client.mu.Lock()
	c.client.consumers[c.group] = c
	c.client.mu.Unlock()
	for _, conn := range c.conns {
		if err := c.client.beat(ctx, conn); err != nil {
			return err
		}
	}
	if c.fromNext {
		return c.fixStart(ctx)
	}
	return nil
}

// awaitShares takes this consumer's share of the queues and returns when all consumers that were opened together own
// theirs.
func (c *consumer) awaitShares(ctx context.Context) error {
	tick := time.NewTicker(lockRetry)
	defer tick.Stop()
	for {
		complete, err := c.rebalance(ctx)
		if err != nil {
			return err
		}
		retry, settled := tick.C, (<-chan struct{})(nil)
		if complete {
			retry, settled = nil, c.shared.settle(c)
		}
		select {
		case <-settled:
			return nil
		case <-retry:
		case <-c.kicked:
		case <-ctx.Done():
			return driver.Errorf(driver.ClassTimeout, "",
				"a killed consumer of the group keeps its locks for a minute",
				"the broker did not give us our queues of group %s: %w", c.group, ctx.Err())
		}
	}
}

// ensureGroup creates the group at a broker that does not have it and does not create groups on first use
// (autoCreateSubscriptionGroup=false), and returns whether it did. It changes nothing at other brokers, nor at brokers
// too old for the question.
func (c *conn) ensureGroup(ctx context.Context, group string) (created bool, err error) {
	r, err := c.call(ctx, wire.ReqGetSubscriptionGroupConfig, []string{"group", group}, nil)
	if err != nil || r.Code != wire.ResSubscriptionGroupNotExist {
		return false, err // of the connection; a refusal by the broker will come again
	}
	_, err = c.must(ctx, "create group "+group, wire.ReqUpdateAndCreateSubscriptionGroup, nil,
		map[string]any{ // SubscriptionGroupConfig, with its defaults
			"groupName": group, "consumeEnable": true, "consumeFromMinEnable": true, "consumeBroadcastEnable": true,
			"retryQueueNums": 1, "retryMaxTimes": 16, "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1,
			"notifyConsumerIdsChangedEnable": true,
		})
	return err == nil, err
}

// checkFilter lets the broker validate an SQL expression.
func (c *consumer) checkFilter(ctx context.Context, conn *conn) error {
	_, err := conn.must(ctx, "set the filter "+strconv.Quote(c.filter.Expression), wire.ReqCheckClientConfig, nil,
		wire.ClientCheck{
			ClientID: c.client.id, Group: c.group, Subscription: c.filter,
		})
	return err
}

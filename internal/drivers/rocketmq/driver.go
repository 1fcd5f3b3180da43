package rocketmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// rocketDriver is a [driver.Driver]: a set of clients by connection key and its knowledge of topics.
type rocketDriver struct {
	transport.Identity
	cfg config

	pool transport.Pool[*client]
	mem  transport.Buffers

	mu     sync.Mutex
	closed bool
	asked  map[string]*transactions // the producers that brokers ask, by the start of messages' unique keys
	// reaches are those of the groups that outlive their consumers.
	reaches map[groupQueue]*reach

	topics topics

	refreshEvery time.Duration
	goodServer   atomic.Int32 // index of the name server that was reached last
	identifying  atomic.Bool  // a broker is being asked for its version

	inspector inspector
	filtered  sync.Map // driver.Destination: those with consumers that take some of the messages
}

func newDriver(cfg config) *rocketDriver {
	d := &rocketDriver{
		cfg: cfg, asked: map[string]*transactions{}, reaches: map[groupQueue]*reach{},
		topics: topics{turn: make(chan struct{}, 1), routes: map[string]*route{}}, refreshEvery: refreshEvery,
	}
	d.pool.Open = func(_ context.Context, spec driver.Connection) (*client, error) { return newClient(d, spec), nil }
	return d
}

// newCaller returns one with a signer of its own.
func (c *config) newCaller() *caller {
	return &caller{sign: wire.NewSigner(c.Target.User, c.Target.Password)}
}

// dial connects to a name server or broker.
func (d *rocketDriver) dial(ctx context.Context, addr string, serve func(*conn, *reply)) (*conn, error) {
	const maxAddr = 300 // a host's name has at most 253 bytes (RFC 1035, section 3.1)
	host, port, err := net.SplitHostPort(addr)
	if err != nil || len(addr) > maxAddr {
		return nil, driver.Errorf(driver.ClassConnect, "connect to "+transport.Clip(addr, maxName),
			protocol.RocketMQ().Absent, "this is not an address")
	}
	nc, raw, err := protocol.RocketMQ().Dial(ctx, transport.Endpoint{Host: host, Port: port}, d.cfg.Target.TLS, d.cfg.TLS)
	if err != nil {
		return nil, err
	}
	return newConn(addr, nc, raw, &d.mem, d.cfg.MaxBody, serve), nil
}

// opening bounds all the steps of opening something.
func (d *rocketDriver) opening(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.cfg.ConnectTimeout)
}

// leaving bounds all the steps of leaving a broker politely.
func leaving(ctx context.Context) (context.Context, context.CancelFunc) {
	const limit = 10 * time.Second
	return context.WithTimeout(ctx, limit)
}

// randomID is for names that must not meet those of other runs.
func randomID() string { return strings.ToLower(rand.Text()[:10]) }

// acquire returns the client of that connection with one more user. A member of a consumer group needs a client that no
// other member of the group uses: it is by their clients that brokers tell members apart.
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

// Close implements [driver.Driver].
func (d *rocketDriver) Close(ctx context.Context) error {
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	d.inspector.close()
	d.pool.Close(ctx)
	if closed || !d.cfg.Options.DeleteTopic {
		return nil
	}
	return d.deleteTopics(ctx)
}

// client is a member of RocketMQ's cluster: an id, and a connection to each broker that it needs.
type client struct {
	*caller
	d    *rocketDriver
	id   string
	stop chan struct{}
	wg   sync.WaitGroup

	mu        sync.Mutex
	conns     map[string]*conn // by address
	consumers map[string]*consumer
	producers map[string][]*producer // by group
}

const (
	heartbeatEvery = 30 * time.Second // brokers drop clients after 120 s
	heartbeatLimit = 10 * time.Second
)

func newClient(d *rocketDriver, spec driver.Connection) *client {
	name := spec.Name
	if spec.ClientID != "" {
		name = spec.ClientID
	}
	c := &client{
		caller: d.cfg.newCaller(), d: d, id: fmt.Sprintf("perfmq-%s@%s", name, randomID()), stop: make(chan struct{}),
		conns: map[string]*conn{}, consumers: map[string]*consumer{}, producers: map[string][]*producer{},
	}
	c.wg.Go(c.keep)
	c.wg.Go(c.refresh)
	return c
}

// connect returns the connection to a broker, opening it if need be.
func (c *client) connect(ctx context.Context, addr string) (*conn, error) {
	gone := c.known(addr)
	if gone != nil && !gone.Dead() {
		return gone, nil
	}
	opened, err := c.d.dial(ctx, addr, c.serve)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if other := c.conns[addr]; other != nil && !other.Dead() {
		c.mu.Unlock()
		opened.close()
		return other, nil
	}
	c.conns[addr] = opened
	c.mu.Unlock()
	c.identify(opened)
	if gone != nil {
		gone.close() // it waits for the goroutines that still run
	}
	return opened, nil
}

func (c *client) known(addr string) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns[addr]
}

func (c *client) connections() []*conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*conn, 0, len(c.conns))
	for _, conn := range c.conns {
		list = append(list, conn)
	}
	return list
}

// Dead implements [transport.Shared].
func (c *client) Dead() bool { return slices.ContainsFunc(c.connections(), (*conn).Dead) }

// reserve keeps the client for a member of the group; it returns false if it has one.
func (c *client) reserve(group string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.consumers[group]; taken {
		return false
	}
	c.consumers[group] = nil
	return true
}

// serve handles requests of a broker; fields are valid only during the call.
func (c *client) serve(conn *conn, r *reply) {
	switch r.Code {
	case wire.ReqNotifyConsumerIDsChanged:
		c.mu.Lock()
		member := c.consumers[string(r.Get("consumerGroup"))]
		c.mu.Unlock()
		if member != nil {
			member.kick()
		}
	case wire.ReqCheckTransactionState:
		c.checkTransaction(conn, r)
	}
}

// keep ends overdue calls and sends heartbeats until the client ends.
func (c *client) keep() {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	beat := time.NewTicker(heartbeatEvery)
	defer beat.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-sweep.C:
			for _, conn := range c.connections() {
				conn.sweep()
			}
		case <-beat.C:
			c.wg.Go(func() { c.beatAll(heartbeatLimit) })
		}
	}
}

// beatAll sends a heartbeat to each broker. One that does not answer in time is taken for lost.
func (c *client) beatAll(limit time.Duration) {
	ctx, cancel := c.while(limit)
	defer cancel()
	for _, conn := range c.connections() {
		if err := c.beat(ctx, conn); err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			conn.fail(driver.Errorf(driver.ClassConnectionLost, "", "the broker, or the network, hangs",
				"no answer to a heartbeat within %s", limit))
		}
	}
}

// End implements [transport.Shared].
func (c *client) End(ctx context.Context) {
	for _, conn := range c.connections() {
		conn.out.Drain(ctx)
	}
	close(c.stop)
	c.wg.Wait() // after which no connection is opened
	for _, conn := range c.connections() {
		conn.close()
	}
}

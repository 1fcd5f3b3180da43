package rocketmq

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
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

	open     openTransactions
	groups   sync.Map     // name -> *groupState: of groups that consumers share, or that may have to be deleted
	members  atomic.Int64 // open consumers
	filtered sync.Map     // driver.Destination: destinations with filtering consumers
}

func newDriver(cfg transport.Settings[Options]) *rocketDriver {
	d := &rocketDriver{
		cfg: cfg, id: randomID(), routing: newTurn(), routes: map[string]*route{},
		open: openTransactions{byKey: map[string]*transactions{}},
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

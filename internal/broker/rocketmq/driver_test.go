//go:build unix

package rocketmq_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/brokertest"
	ours "github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

func openDriver(t *testing.T, b *testBroker, options ...string) driver.Driver {
	t.Helper()
	f := ours.Factory()
	o := f.NewOptions()
	require.NoError(t, driver.SetOptions(o, options))
	d := musttest.Get(f.Open(t.Context(), driver.OpenOptions{URL: b.url(), ConnectTimeout: patience, Options: o}))(t)
	t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
	return d
}

// got is the result of a consumer.
type got struct {
	mu    sync.Mutex
	times []int64
	again int
}

func receive(t *testing.T, d driver.Driver, dest driver.Destination) *got {
	t.Helper()
	return receiveOver(t, d, dest, "c")
}

// receiveOver receives over the connection of a key.
func receiveOver(t *testing.T, d driver.Driver, dest driver.Destination, key string) *got {
	t.Helper()
	spec := driver.ConsumerSpec{Connection: driver.Connection{Key: key, Name: key}, Destination: dest, Name: "consumer-1"}
	return receiveAs(t, d, spec, func(*driver.Delivery) driver.Verdict { return driver.Accept })
}

// receiveAs receives, and counts the messages that verdict accepts.
func receiveAs(t *testing.T, d driver.Driver, spec driver.ConsumerSpec, verdict func(*driver.Delivery) driver.Verdict) *got {
	t.Helper()
	c := musttest.Get(d.Consumer(t.Context(), spec))(t)
	ctx, cancel := context.WithCancel(context.Background())
	g, ended := &got{}, make(chan error, 1)
	go func() {
		ended <- c.Run(ctx, func(m *driver.Delivery) driver.Verdict {
			g.mu.Lock()
			defer g.mu.Unlock()
			v := verdict(m)
			if v == driver.Accept {
				g.times = append(g.times, m.Time)
			}
			if m.Redelivered {
				g.again++
			}
			return v
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, c.Close(context.Background()))
	})
	return g
}

// wait waits for n messages, all different.
func (g *got) wait(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.times) >= n
	}, patience, 5*time.Millisecond)
	g.mu.Lock()
	defer g.mu.Unlock()
	times := slices.Clone(g.times)
	slices.Sort(times)
	require.Len(t, slices.Compact(times), n)
	require.Len(t, g.times, n)
}

func send(t *testing.T, d driver.Driver, dest driver.Destination, n int) driver.Producer {
	t.Helper()
	var mu sync.Mutex
	accepted := 0
	p, err := d.Producer(t.Context(), driver.ProducerSpec{
		Connection: driver.Connection{Key: "p", Name: "p"}, Destination: dest, Name: "producer-1", MaxPending: n, Variants: hello(),
	}, driver.DoneFunc(func(_ driver.Slot, o driver.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		if o.State == driver.Accepted {
			accepted++
		}
	}))
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: driver.Slot(i), Time: int64(i + 1)}))
	}
	require.NoError(t, p.Close(t.Context()))
	require.Equal(t, n, accepted)
	return p
}

// hello is a plain message.
func hello() []driver.Variant { return []driver.Variant{{Body: []byte("hello"), Priority: -1}} }

func counter(t *testing.T, from any, name string) int {
	t.Helper()
	for _, c := range from.(driver.Counting).Counters() {
		if c.Name == name {
			return int(c.Value)
		}
	}
	require.Fail(t, "no counter "+name)
	return 0
}

func queueNamed(name string) driver.Destination {
	return driver.Destination{Kind: driver.Queue, Name: name}
}

// patientCheck is longer than a client takes to end a transaction: the broker is not to ask for one that has an end.
const patientCheck = 4 * time.Second

func TestDriversTransactions(t *testing.T) {
	t.Parallel()
	b := start(t, store.Config{}, rocketmq.Options{TransactionCheck: patientCheck})
	d := openDriver(t, b, "transactional=true", "rollback-percent=20", "unknown-percent=30")
	in := receive(t, d, queueNamed("TX"))
	p := send(t, d, queueNamed("TX"), 100)
	require.Equal(t, 30, counter(t, p, "tx-committed-late"))
	in.wait(t, 80)
	s := b.Stats()
	require.EqualValues(t, 100, s.Halves)
	require.EqualValues(t, 80, s.Committed)
	require.EqualValues(t, 20, s.RolledBack)
	require.EqualValues(t, counter(t, p, "tx-checks"), s.Checks)
	require.Zero(t, s.OpenHalves)
	require.EqualValues(t, 80, sent(b, "TX"))
}

// TestDriversTransactionsOfALostProducer: after a lost connection the next producer of the driver ends the transactions
// of the previous one.
func TestDriversTransactionsOfALostProducer(t *testing.T) {
	t.Parallel()
	b := start(t, store.Config{}, rocketmq.Options{TransactionCheck: patientCheck})
	d := openDriver(t, b, "transactional=true", "unknown-percent=50")
	var accepted, sent atomic.Int64
	open := func() driver.Producer {
		p, err := d.Producer(t.Context(), driver.ProducerSpec{
			Connection: driver.Connection{Key: "p", Name: "p"}, Destination: queueNamed("TXL"), Name: "producer-1", MaxPending: 1000,
			Variants: hello(),
		}, driver.DoneFunc(func(_ driver.Slot, o driver.Outcome) {
			if o.State == driver.Accepted {
				accepted.Add(1)
			}
		}))
		require.NoError(t, err)
		return p
	}
	p := open()
	say := func() error {
		n := sent.Add(1)
		return p.Send(t.Context(), &driver.Message{Slot: driver.Slot(n), Time: n})
	}
	for range 20 {
		require.NoError(t, say())
	}
	require.Eventually(t, func() bool { return accepted.Load() == 20 }, patience, time.Millisecond)
	b.drop()
	require.Eventually(t, func() bool { return say() != nil }, patience, time.Millisecond)
	require.NoError(t, p.Close(t.Context()))
	require.Positive(t, counter(t, p, "tx-open"))
	next := open()
	require.Eventually(t, func() bool { return b.Stats().OpenHalves == 0 }, patience, time.Millisecond)
	require.NoError(t, next.Close(t.Context()))
	require.Zero(t, counter(t, next, "tx-open"))
	require.Zero(t, counter(t, p, "tx-open"))
	require.Equal(t, counter(t, p, "tx-left-open"), counter(t, p, "tx-committed-late")+counter(t, next, "tx-committed-late"))
	require.GreaterOrEqual(t, b.Stats().Committed, uint64(accepted.Load())) //nolint:gosec // not negative
}

// TestDriverIsNotHeldBackForLong: a consumer makes room as it consumes, not when it saves its offsets every five
// seconds, which would be nine times.
func TestDriverIsNotHeldBackForLong(t *testing.T) {
	t.Parallel()
	const limit, n = 500, 5000
	b := start(t, store.Config{Limit: limit}, rocketmq.Options{})
	d := openDriver(t, b, "send=sync", "queues=1")
	in := receive(t, d, queueNamed("FAST"))
	began := time.Now()
	send(t, d, queueNamed("FAST"), n)
	in.wait(t, n)
	require.Less(t, time.Since(began), 20*time.Second)
	require.Zero(t, b.Stats().Dropped)
}

// TestSharedConnectionIsReadOn: commits make room over the connection that waits for room to send.
func TestSharedConnectionIsReadOn(t *testing.T) {
	for _, mode := range []string{"async", "oneway"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := start(t, store.Config{Limit: 500}, rocketmq.Options{})
			d := openDriver(t, b, "send-timeout=60s", "send="+mode)
			in := receiveOver(t, d, queueNamed("SHARED"), "p")
			send(t, d, queueNamed("SHARED"), 2000)
			in.wait(t, 2000)
			require.Zero(t, b.Stats().Dropped)
		})
	}
}

const (
	user, password = "perfmq-user", "perfmq-secret"
)

// conformance is as for the real broker (see the driver's own test), but that we take empty bodies from other
// protocols.
func conformance(t *testing.T, options ...string) drivertest.Config {
	b := start(t, storetest.Limits(), rocketmq.Options{AccessKey: user, SecretKey: password})
	cfg := drivertest.Config{
		Factory: ours.Factory(), URL: b.url(), User: user, Password: password, WrongPassword: "wrong",
		Options: append([]string{"send-timeout=1m"}, options...), // a busy machine takes more than 3 s for a large body
		MinBody: 1, MaxBody: 1 << 20, Log: true,                  // TestTooLargeMessages has more
		Path:        func(t testing.TB) drivertest.Path { return brokertest.NewRocketMQPath(t, b.addr, b.addr) },
		Allocations: 10, // of the broker, for the most part
		Unordered:   unordered,
	}
	storetest.Configure(&cfg, b.store)
	cfg.Rejected = func(testing.TB) int64 { return int64(b.Stats().Dead) }
	return cfg
}

const unordered = "the messages of a topic are spread over its queues"

func TestConformance(t *testing.T) {
	cfg := conformance(t)
	cfg.Broker = "the embedded broker"
	drivertest.Run(t, cfg)
}

func TestConformanceOfModes(t *testing.T) {
	for name, options := range map[string][]string{
		"oneway": {"send=oneway"},
		"sync":   {"send=sync"},
		"batch":  {"send=batch", "batch-size=7"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := conformance(t, options...)
			cfg.AtMostOnce, cfg.Mode, cfg.Sending = name == "oneway", true, name != "sync"
			if name == "batch" {
				const why = "replies are sent one by one"
				cfg.Lacks = map[drivertest.Feature]string{drivertest.RequestReply: why, drivertest.DynamicReply: why}
			}
			drivertest.Run(t, cfg)
		})
	}
}

//go:build unix

package rocketmq_test

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	driver "github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/tcpproxy"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

const (
	user, password = "perfmq-user", "perfmq-secret"
)

func secrets(key string) (string, bool) { return password, key == user }

// conformance is as for the real broker (see the driver's own test), but that we take empty bodies from other
// protocols.
func conformance(t *testing.T, options ...string) drivertest.Config {
	b := start(t, storetest.Limits(), rocketmq.Options{Secret: secrets, MaxMessage: 12 << 20})
	cfg := drivertest.Config{
		Factory: driver.Factory(), URL: b.url(), User: user, Password: password, WrongPassword: "wrong",
		Options: append([]string{"send-timeout=1m"}, options...), // a busy machine takes more than 3 s for a large body
		MinBody: 1, Log: true,
		Path:        func(t testing.TB) drivertest.Path { return newPath(t, b) },
		Allocations: 10, // of the broker, for the most part
		Victim: func(t testing.TB) (string, func()) {
			victim := start(t, store.Config{}, rocketmq.Options{Secret: secrets})
			return victim.url(), func() { _ = victim.l.Close(); victim.drop() }
		},
		Unordered: unordered,
	}
	storetest.Configure(&cfg, b.store)
	cfg.Rejected = func(testing.TB) int64 { return int64(b.Stats().Dead) }
	cfg.QueueCounters = nil // its topics are no queues of the store
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
		"batch":  {"send=batch", "batch-size=7"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := conformance(t, options...)
			cfg.AtMostOnce, cfg.Mode, cfg.Sending = name == "oneway", true, true
			drivertest.Run(t, cfg)
		})
	}
}

// path is a proxy before the broker, which passes for the address that the broker tells clients.
type path struct {
	*tcpproxy.Proxy
	t    testing.TB
	b    *testBroker
	down *atomic.Int64
}

func newPath(t testing.TB, b *testBroker) *path {
	p := &path{t: t, b: b, down: new(atomic.Int64)}
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		if len(l.Addr().String()) == len(b.addr) { // so that the one can be exchanged for the other within frames
			p.listen(l)
			t.Cleanup(func() { p.Close() })
			return p
		}
		_ = l.Close()
	}
}

func (p *path) listen(l net.Listener) {
	var proxy *tcpproxy.Proxy
	theirs, ours := []byte(p.b.addr), []byte(l.Addr().String())
	ready := make(chan struct{})
	proxy = tcpproxy.New(l, p.b.addr, func(_ int, d tcpproxy.Direction, to io.Writer, from io.Reader) {
		<-ready
		proxy.Copy(to, from, func(b []byte) []byte {
			if d == tcpproxy.Up {
				return b
			}
			p.down.Add(int64(len(b)))
			return bytes.ReplaceAll(b, theirs, ours)
		})
	})
	p.Proxy = proxy
	close(ready)
}

func (p *path) URL() string { return "rocketmq://" + p.Addr() }

func (p *path) Received() int64 { return p.down.Load() }

func (p *path) Connections() int64 { return p.Opened() }

// Restore listens again at the same address.
func (p *path) Restore() {
	l, err := net.Listen("tcp", p.Addr())
	require.NoError(p.t, err)
	p.listen(l)
}

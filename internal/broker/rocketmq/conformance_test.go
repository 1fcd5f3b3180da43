//go:build unix

package rocketmq_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	driver "github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

const (
	user, password = "perfmq-user", "perfmq-secret"
)

func secrets(key string) (string, bool) { return password, key == user }

// conformance is as for the real broker (see the driver's own test), but that we take empty bodies from other protocols.
func conformance(t *testing.T, options ...string) drivertest.Config {
	b := start(t, store.Config{}, rocketmq.Options{Secret: secrets, MaxMessage: 12 << 20})
	return drivertest.Config{
		Factory: driver.Factory(), URL: b.url(), User: user, Password: password, WrongPassword: "wrong", Options: options,
		MinBody: 1, Log: true,
		Path: func(t testing.TB) drivertest.Path { return newPath(t) },
		Victim: func(t testing.TB) (string, func()) {
			victim := start(t, store.Config{}, rocketmq.Options{Secret: secrets})
			return victim.url(), func() { _ = victim.l.Close(); victim.drop() }
		},
	}
}

func TestConformance(t *testing.T) {
	cfg := conformance(t)
	cfg.Broker = "the embedded broker"
	drivertest.Run(t, cfg)
}

func TestConformanceOfModes(t *testing.T) {
	for _, mode := range []struct {
		name    string
		options []string
		once    bool
	}{
		{"sync", []string{"send=sync", "consume=pull", "order=orderly"}, false},
		{"oneway", []string{"send=oneway"}, true},
		{"batch", []string{"send=batch", "batch-size=7"}, false},
		{"compressed", []string{"compress=true", "queues=3"}, false},
		{"namespace", []string{"namespace=ns1"}, false},
	} {
		t.Run(mode.name, func(t *testing.T) {
			cfg := conformance(t, mode.options...)
			cfg.AtMostOnce = mode.once
			drivertest.Run(t, cfg)
		})
	}
}

// path is a broker of its own behind a proxy, which it tells clients to be its address.
type path struct {
	l      net.Listener
	broker *testBroker
	wg     sync.WaitGroup

	mu     sync.Mutex
	gate   *sync.Cond
	frozen bool
	cut    bool
	conns  []net.Conn
}

func newPath(t testing.TB) *path {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &path{l: l, broker: start(t, store.Config{}, rocketmq.Options{Secret: secrets, Address: l.Addr().String()})}
	p.gate = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	t.Cleanup(func() { p.Cut(); p.wg.Wait() })
	return p
}

func (p *path) URL() string { return "rocketmq://" + p.l.Addr().String() }

func (p *path) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

func (p *path) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	_ = p.l.Close()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.gate.Broadcast()
}

func (p *path) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", p.broker.addr, 5*time.Second)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		if p.cut {
			_ = client.Close()
			_ = server.Close()
		}
		p.mu.Unlock()
		p.wg.Go(func() { p.copy(server, client) })
		p.wg.Go(func() { p.copy(client, server) })
	}
}

func (p *path) copy(to, from net.Conn) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && p.pass() {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *path) pass() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.frozen && !p.cut {
		p.gate.Wait()
	}
	return !p.cut
}

//go:build unix

package rocketmq

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// sharedBroker is started by the first test that asks and ended by TestMain.
type sharedBroker struct {
	once   sync.Once
	broker *brokertest.RocketMQ
	err    error
}

var shared sharedBroker

func TestMain(m *testing.M) {
	if where := os.Getenv(libraryConsumerEnv); where != "" {
		if err := libraryConsumer(where); err != nil {
			fmt.Println(err)
		}
		return
	}
	m.Run()
	if shared.broker != nil {
		_ = shared.broker.Close()
	}
}

func (s *sharedBroker) get(tb testing.TB) *brokertest.RocketMQ {
	tb.Helper()
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		s.broker, s.err = brokertest.LaunchRocketMQ(ctx)
	})
	require.NoError(tb, s.err, "this test needs a RocketMQ broker")
	return s.broker
}

// What differs from other brokers, and why:
//   - MinBody 1: RocketMQ refuses empty bodies.
//   - MaxBody 1 MiB: brokers take 4 MiB unless configured otherwise.
//   - Log: a filter belongs to a consumer group, which passes over what it leaves out.
//   - Path: clients connect to the address that the name server gives, so that both need a proxy.
func conformance(t *testing.T, options ...string) drivertest.Config {
	broker := shared.get(t)
	return drivertest.Config{
		Factory: Factory(), URL: broker.URL(), Options: options, MinBody: 1, MaxBody: 1 << 20, Log: true,
		Path: func(t testing.TB) drivertest.Path { return newPath(t, broker) },
	}
}

func TestConformance(t *testing.T) {
	cfg := conformance(t)
	cfg.Broker = "RocketMQ " + brokertest.RocketMQVersion
	cfg.Victim = func(t testing.TB) (string, func()) {
		victim := brokertest.StartRocketMQ(t)
		return victim.URL(), victim.Kill
	}
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
	} {
		t.Run(mode.name, func(t *testing.T) {
			cfg := conformance(t, mode.options...)
			cfg.AtMostOnce = mode.once
			drivertest.Run(t, cfg)
		})
	}
}

// path is a way to the broker: a proxy before the name server, which tells clients the address of another before the
// broker.
type path struct {
	url  string
	both []net.Listener
	wg   sync.WaitGroup

	mu     sync.Mutex
	gate   *sync.Cond
	frozen bool
	cut    bool
	conns  []net.Conn
}

func newPath(t testing.TB, broker *brokertest.RocketMQ) *path {
	p := &path{}
	p.gate = sync.NewCond(&p.mu)
	toBroker := p.listen(t, broker.Broker())
	// Addresses of the same length can be exchanged within frames.
	from, to := broker.Broker(), toBroker.Addr().String()
	require.Len(t, to, len(from))
	nameServer := p.listen(t, broker.NameServer())
	p.serve(toBroker, broker.Broker(), "", "")
	p.serve(nameServer, broker.NameServer(), from, to)
	p.url = "rocketmq://" + nameServer.Addr().String()
	t.Cleanup(func() { p.Cut(); p.wg.Wait() })
	return p
}

// listen returns a listener on a port with as many digits as the target's.
func (p *path) listen(t testing.TB, target string) net.Listener {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		if len(l.Addr().String()) == len(target) {
			p.both = append(p.both, l)
			return l
		}
		_ = l.Close()
	}
}

func (p *path) URL() string { return p.url }

func (p *path) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

func (p *path) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for _, l := range p.both {
		_ = l.Close()
	}
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.gate.Broadcast()
}

func (p *path) serve(l net.Listener, target, from, to string) {
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
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
			p.wg.Go(func() { p.copy(server, client, "", "") })
			p.wg.Go(func() { p.copy(client, server, from, to) })
		}
	})
}

func (p *path) copy(to, from net.Conn, old, replacement string) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && p.pass() {
			out := b[:n]
			if old != "" {
				out = bytes.ReplaceAll(out, []byte(old), []byte(replacement))
			}
			if _, err := to.Write(out); err != nil {
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

// openDriver opens a driver with options; it is closed with the test.
func openDriver(t testing.TB, url string, options ...string) driver.Driver {
	t.Helper()
	f := Factory()
	o := f.NewOptions()
	require.NoError(t, driver.SetOptions(o, options))
	user, password := "", ""
	if i := strings.IndexByte(url, ' '); i > 0 { // "url user password"
		parts := strings.Fields(url)
		url, user, password = parts[0], parts[1], parts[2]
	}
	d, err := f.Open(t.Context(), driver.OpenOptions{URL: url, User: user, Password: password, ConnectTimeout: 10 * time.Second, Options: o})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
	return d
}

func topicNamed(name string) driver.Destination {
	return driver.Destination{Kind: driver.Topic, Name: name}
}

func queueNamed(name string) driver.Destination {
	return driver.Destination{Kind: driver.Queue, Name: name}
}

func unique(prefix string) string { return prefix + "-" + strconv.FormatInt(time.Now().UnixNano(), 36) }

//go:build unix

package rocketmq

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/tcpproxy"
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
	rlog.SetLogger(quiet{}) // once: the library reads it without a lock, also long after a test
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
	nameServer, broker *tcpproxy.Proxy
}

func newPath(t testing.TB, broker *brokertest.RocketMQ) *path {
	p := &path{broker: tcpproxy.New(listenLike(t, broker.Broker()), broker.Broker(), nil)}
	// Addresses of the same length can be exchanged within frames.
	from, to := []byte(broker.Broker()), []byte(p.broker.Addr())
	require.Len(t, to, len(from))
	exchange := func(b []byte) []byte { return bytes.ReplaceAll(b, from, to) }
	p.nameServer = tcpproxy.New(listenLike(t, broker.NameServer()), broker.NameServer(), func(_ int, d tcpproxy.Direction, to io.Writer, from io.Reader) {
		if d == tcpproxy.Down {
			p.broker.Copy(to, from, exchange)
		} else {
			p.broker.Copy(to, from, nil)
		}
	})
	t.Cleanup(func() {
		p.nameServer.Close()
		p.broker.Close()
	})
	return p
}

// listenLike returns a listener on a port with as many digits as the target's.
func listenLike(t testing.TB, target string) net.Listener {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		if len(l.Addr().String()) == len(target) {
			return l
		}
		_ = l.Close()
	}
}

func (p *path) URL() string { return "rocketmq://" + p.nameServer.Addr() }

// Freeze freezes both: what passes through the one asks the other for leave.
func (p *path) Freeze() { p.broker.Freeze() }

func (p *path) Cut() {
	p.nameServer.Cut()
	p.broker.Cut()
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

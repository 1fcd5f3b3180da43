//go:build unix

package rocketmq_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	driver "github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/tcpproxy"
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
type path struct{ *tcpproxy.Proxy }

func newPath(t testing.TB) path {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := start(t, store.Config{}, rocketmq.Options{Secret: secrets, Address: l.Addr().String()})
	p := path{tcpproxy.New(l, b.addr, nil)}
	t.Cleanup(p.Close)
	return p
}

func (p path) URL() string { return "rocketmq://" + p.Addr() }

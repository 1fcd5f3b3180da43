package drivertest

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/tcpproxy"
)

// splitURL splits scheme://[user@]host,host/path.
func splitURL(url string) (before, hosts, after string) {
	scheme, rest, _ := strings.Cut(url, "://")
	before = scheme + "://"
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		before, rest = before+rest[:i+1], rest[i+1:]
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest, after = rest[:i], rest[i:]
	}
	return before, rest, after
}

// withHosts replaces the hosts of a URL.
func withHosts(url, hosts string) string {
	before, _, after := splitURL(url)
	return before + hosts + after
}

// proxy is a Path through TCP connections of the suite.
type proxy struct {
	*tcpproxy.Proxy
	t   testing.TB
	url string
}

func newProxy(t testing.TB, url string) *proxy {
	t.Helper()
	_, hosts, _ := splitURL(url)
	target, _, _ := strings.Cut(hosts, ",")
	_, _, err := net.SplitHostPort(target)
	require.NoErrorf(t, err, "drivertest: Config.URL needs host:port, or set Config.Path: %s", url)
	p, err := tcpproxy.New(tcpproxy.Config{Target: target})
	require.NoError(t, err, "listen on loopback")
	t.Cleanup(p.Close)
	return &proxy{p, t, withHosts(url, p.Addr())}
}

// URL is the broker's, with the proxy's address.
func (p *proxy) URL() string { return p.url }

// Restore listens again, at the same address.
func (p *proxy) Restore() { require.NoError(p.t, p.Proxy.Restore(), "listen again after a cut") }

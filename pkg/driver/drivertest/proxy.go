package drivertest

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/tcpproxy"
)

// splitURL takes scheme://[user@]host,host/path apart.
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

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err, "listen on loopback")
	return l
}

// freeAddress is one where nobody listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	l := listen(t)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// silentAddress is one where connections are made, by the system, but nobody answers.
func silentAddress(t testing.TB) string {
	t.Helper()
	l := listen(t)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// proxy is a Path through TCP connections of the suite.
type proxy struct {
	*tcpproxy.Proxy
	url string
}

func newProxy(t testing.TB, url string) *proxy {
	t.Helper()
	_, hosts, _ := splitURL(url)
	target, _, _ := strings.Cut(hosts, ",")
	_, _, err := net.SplitHostPort(target)
	require.NoErrorf(t, err, "drivertest: Config.URL needs host:port, or set Config.Path: %s", url)
	p := &proxy{Proxy: tcpproxy.New(listen(t), target, nil)}
	p.url = withHosts(url, p.Addr())
	t.Cleanup(p.Close)
	return p
}

// URL is the broker's, with the proxy's address.
func (p *proxy) URL() string { return p.url }

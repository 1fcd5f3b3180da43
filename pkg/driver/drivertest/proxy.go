package drivertest

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
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

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err, "listen on loopback")
	return l
}

// freeAddress returns an address without a listener that no other program gets until the test ends: the local address
// of a connection that stays open.
func freeAddress(t testing.TB) string {
	t.Helper()
	l := listen(t)
	defer func() { _ = l.Close() }()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err, "connect on loopback")
	t.Cleanup(func() { _ = c.Close() })
	return c.LocalAddr().String()
}

// silentAddress returns an address where the system accepts connections, but no program answers.
func silentAddress(t testing.TB) string {
	t.Helper()
	l := listen(t)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// proxy is a Path through TCP connections of the suite.
type proxy struct {
	t           testing.TB
	url, target string
	listener    net.Listener
	wg          sync.WaitGroup

	down   atomic.Int64 // bytes from the broker
	opened atomic.Int64 // connections

	mu     sync.Mutex
	gate   *sync.Cond
	frozen bool
	cut    bool
	conns  []net.Conn
}

func newProxy(t testing.TB, url string) *proxy {
	t.Helper()
	_, hosts, _ := splitURL(url)
	target, _, _ := strings.Cut(hosts, ",")
	_, _, err := net.SplitHostPort(target)
	require.NoErrorf(t, err, "drivertest: Config.URL needs host:port, or set Config.Path: %s", url)
	p := &proxy{t: t, target: target, listener: listen(t)}
	p.gate = sync.NewCond(&p.mu)
	p.url = withHosts(url, p.listener.Addr().String())
	p.wg.Go(func() { p.accept(p.listener) })
	t.Cleanup(func() { p.Cut(); p.wg.Wait() })
	return p
}

// URL is the broker's, with the proxy's address.
func (p *proxy) URL() string { return p.url }

// Freeze stops reading.
func (p *proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

// Cut closes everything.
func (p *proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	_ = p.listener.Close()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.gate.Broadcast()
}

// Restore listens again, at the same address.
func (p *proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cut {
		return
	}
	l, err := (&net.ListenConfig{}).Listen(p.t.Context(), "tcp", p.listener.Addr().String())
	require.NoError(p.t, err, "listen again after a cut")
	p.listener, p.conns, p.frozen, p.cut = l, nil, false, false
	p.wg.Go(func() { p.accept(l) })
}

// Received does not count protocol overhead of the network.
func (p *proxy) Received() int64 { return p.down.Load() }

// Connections counts each before the client gets an answer.
func (p *proxy) Connections() int64 { return p.opened.Load() }

func (p *proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.opened.Add(1)
		p.wg.Go(func() { p.serve(client) })
	}
}

func (p *proxy) serve(client net.Conn) {
	broker, err := net.Dial("tcp", p.target) //nolint:noctx // ends with Cut
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, broker)
	if p.cut {
		_ = client.Close()
		_ = broker.Close()
	}
	p.mu.Unlock()
	p.wg.Go(func() { p.copy(client, broker, &p.down) })
	p.copy(broker, client, new(atomic.Int64))
}

// copy moves bytes one way, counts them, and closes both when one ends.
func (p *proxy) copy(to, from net.Conn, count *atomic.Int64) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && p.pass() {
			count.Add(int64(n))
			if _, werr := to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits while frozen; it returns false when cut.
func (p *proxy) pass() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.frozen && !p.cut {
		p.gate.Wait()
	}
	return !p.cut
}

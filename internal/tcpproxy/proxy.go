// Package tcpproxy is a way to a TCP server that tests can freeze, cut and change.
package tcpproxy

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// dialTimeout bounds connecting to the target.
const dialTimeout = 10 * time.Second

// Direction is one way through the proxy.
type Direction uint8

// The directions.
const (
	Up   Direction = iota // from the client to the target
	Down                  // from the target to the client
)

// Stream moves the bytes of one connection one way until it ends. Both ends are closed afterwards, and the other way
// with them. Number counts the proxy's connections, from 0.
type Stream func(number int, d Direction, to io.Writer, from io.Reader)

// Proxy passes TCP connections on to a target. Its methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string
	stream   Stream
	wg       sync.WaitGroup
	opened   atomic.Int64

	mu     sync.Mutex
	gate   *sync.Cond
	frozen bool
	cut    bool
	conns  []net.Conn
}

// New returns a proxy that listens on l, which it closes, and passes connections on to target, which is host:port. A
// nil stream changes nothing.
func New(l net.Listener, target string, stream Stream) *Proxy {
	p := &Proxy{listener: l, target: target, stream: stream}
	p.gate = sync.NewCond(&p.mu)
	if stream == nil {
		p.stream = func(_ int, _ Direction, to io.Writer, from io.Reader) { p.Copy(to, from, nil) }
	}
	p.wg.Go(p.accept)
	return p
}

// Addr returns where the proxy listens, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Freeze stops all traffic, both ways, with connections staying up: nothing is read any more.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

// Cut ends all connections, and refuses new ones.
func (p *Proxy) Cut() { p.end(false) }

// Reset is Cut by resets, as when a host dies.
func (p *Proxy) Reset() { p.end(true) }

// Close is Cut, and waits until nothing moves any more.
func (p *Proxy) Close() {
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) end(reset bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	_ = p.listener.Close()
	for _, c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	p.gate.Broadcast()
}

// Opened returns how many connections clients have opened.
func (p *Proxy) Opened() int64 { return p.opened.Load() }

func (p *Proxy) accept() {
	for number := 0; ; number++ {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.opened.Add(1)
		p.wg.Go(func() { p.serve(number, client) })
	}
}

func (p *Proxy) serve(number int, client net.Conn) {
	target, err := net.DialTimeout("tcp", p.target, dialTimeout) //nolint:noctx // it has a limit
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, target)
	if p.cut {
		_ = client.Close()
		_ = target.Close()
	}
	p.mu.Unlock()
	pass := func(d Direction, to, from net.Conn) {
		p.stream(number, d, to, from)
		_ = to.Close()
		_ = from.Close()
	}
	p.wg.Go(func() { pass(Down, client, target) })
	pass(Up, target, client)
}

// Copy moves bytes until from ends, to fails, or the proxy is cut. Change, if not nil, may replace the bytes read.
func (p *Proxy) Copy(to io.Writer, from io.Reader, change func([]byte) []byte) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && p.Pass() {
			b := buf[:n]
			if change != nil {
				b = change(b)
			}
			if _, werr := to.Write(b); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Pass waits while the proxy is frozen; it returns false when it is cut.
func (p *Proxy) Pass() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.frozen && !p.cut {
		p.gate.Wait()
	}
	return !p.cut
}

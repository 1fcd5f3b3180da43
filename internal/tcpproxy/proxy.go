// Package tcpproxy is a way to a TCP server that tests can freeze, cut, tear, delay and change, and that counts bytes.
package tcpproxy

import (
	"bytes"
	"context"
	"fmt"
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

// Config describes a proxy. Everything but Target may be empty.
type Config struct {
	Target  string // host:port
	Address string // where to listen, as host:port; a free port of loopback if empty
	// Announced is an address that the target tells its clients. The proxy replaces it by the address of For, or by its
	// own. All of them have the same length.
	Announced string
	For       *Proxy
	// Dial connects to the target in another way.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Line delays the bytes of both directions. Such a proxy does not freeze or tear.
	Line *Line
	// Stream moves the bytes in another way. Such a proxy neither counts bytes, nor does it freeze, tear or replace.
	Stream Stream
}

// Proxy passes TCP connections on to a target. Its methods are safe for concurrent use.
type Proxy struct {
	cfg              Config
	wg               sync.WaitGroup
	opened, received atomic.Int64

	mu       sync.Mutex
	gate     *sync.Cond
	listener net.Listener
	frozen   bool
	cut      bool
	release  func() // of the port of a proxy that is cut
	conns    map[*conn]bool
}

// conn is a connection through the proxy.
type conn struct {
	client, target net.Conn
	torn           bool
}

// New returns a proxy that listens. It must be closed.
func New(cfg Config) (*Proxy, error) {
	p := &Proxy{cfg: cfg, cut: true, release: func() {}}
	p.gate = sync.NewCond(&p.mu)
	if cfg.Dial == nil {
		p.cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	if cfg.Address == "" {
		p.cfg.Address = "127.0.0.1:0"
	}
	return p, p.Restore()
}

// Restore listens again, at the same address, after a cut.
func (p *Proxy) Restore() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.cut {
		p.release()
		p.release = func() {}
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", p.cfg.Address)
		if err != nil {
			return fmt.Errorf("listen for the way to %s: %w", p.cfg.Target, err)
		}
		if n := len(p.cfg.Announced); n > 0 && n != len(l.Addr().String()) {
			_ = l.Close()
			continue
		}
		if address := l.Addr().String(); p.cfg.Address != address { // streams that end read it
			p.cfg.Address = address
		}
		p.listener, p.conns, p.frozen, p.cut = l, map[*conn]bool{}, false, false
		p.wg.Go(func() { p.accept(l) })
	}
	return nil
}

// Addr returns where the proxy listens, as host:port.
func (p *Proxy) Addr() string { return p.cfg.Address }

// Freeze stops all traffic, both ways, with connections staying up: nothing is read any more.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

// Cut ends all connections, and refuses new ones. The port stays its own: the kernel would soon give it to another
// listener of another test.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cut {
		_ = p.listener.Close()
		p.release = reserve(p.listener.Addr())
	}
	p.cut = true
	for c := range p.conns {
		c.close()
	}
	p.gate.Broadcast()
}

// Close is Cut, and waits until nothing moves any more.
func (p *Proxy) Close() {
	p.Cut()
	p.wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release()
	p.release = func() {}
}

func (c *conn) close() {
	_ = c.client.Close()
	_ = c.target.Close()
}

// Tear ends each present connection within the next frame that its client sends: the frame is passed on without its
// last byte. A connection that is silent for a second ends between two frames. New connections are accepted. Tear waits
// for the ends, and returns their number.
func (p *Proxy) Tear(ctx context.Context) (int, error) {
	p.mu.Lock()
	torn := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		c.torn = true
		torn = append(torn, c)
	}
	p.mu.Unlock()
	deadline := time.After(time.Second)
	for tick := time.NewTicker(time.Millisecond); p.any(torn); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return len(torn), ctx.Err()
		case <-deadline:
			for _, c := range torn {
				c.close()
			}
			return len(torn), nil
		}
	}
	return len(torn), nil
}

// any reports whether one of the connections is still there.
func (p *Proxy) any(list []*conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range list {
		if p.conns[c] {
			return true
		}
	}
	return false
}

// Connections returns the number of connections that clients have opened.
func (p *Proxy) Connections() int64 { return p.opened.Load() }

// Received returns the number of bytes from the target that were passed on.
func (p *Proxy) Received() int64 { return p.received.Load() }

func (p *Proxy) accept(l net.Listener) {
	for number := 0; ; number++ {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.opened.Add(1)
		p.wg.Go(func() { p.serve(number, client) })
	}
}

func (p *Proxy) serve(number int, client net.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	target, err := p.cfg.Dial(ctx, p.cfg.Target)
	cancel()
	if err != nil { // as if nobody listened
		if tcp, ok := client.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = client.Close()
		return
	}
	c := &conn{client: client, target: target}
	p.mu.Lock()
	p.conns[c] = true
	if p.cut {
		c.close()
	}
	p.mu.Unlock()
	var down sync.WaitGroup
	down.Go(func() {
		p.move(c, number, Down, client, target)
		c.close()
	})
	p.move(c, number, Up, target, client)
	c.close()
	down.Wait()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// move moves bytes one way until from ends, to fails, or the connection is torn or cut.
func (p *Proxy) move(c *conn, number int, d Direction, to io.Writer, from io.Reader) {
	change := p.replace
	if d == Up || p.cfg.Announced == "" {
		change = nil
	}
	switch {
	case p.cfg.Stream != nil:
		p.cfg.Stream(number, d, to, from)
		return
	case p.cfg.Line != nil:
		p.cfg.Line.pass(to, from, change)
		return
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if open, torn := p.pass(c); n > 0 && open {
			b := buf[:n]
			if d == Down {
				p.received.Add(int64(n))
			} else if torn {
				_, _ = to.Write(b[:n-1])
				return
			}
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

// replace puts the address of a proxy in the place of the target's.
func (p *Proxy) replace(b []byte) []byte {
	by := p
	if p.cfg.For != nil {
		by = p.cfg.For
	}
	return bytes.ReplaceAll(b, []byte(p.cfg.Announced), []byte(by.Addr()))
}

// pass waits while the proxy is frozen. It returns whether the connection is open, and whether it is to be torn.
func (p *Proxy) pass(c *conn) (open, torn bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.frozen && !p.cut {
		p.gate.Wait()
	}
	return !p.cut, c.torn
}

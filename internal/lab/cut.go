//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/tcpproxy"
)

// cutter passes connections on to brokers, and cuts all of them in the middle of a frame on demand. It goes on taking
// new ones.
type cutter struct {
	mu      sync.Mutex
	proxies []*tcpproxy.Proxy
	ways    map[*way]bool // from clients to the broker
	line    *slowLine     // if not nil, all connections lead over it, and none can be cut
}

// way is a connection's way to the broker.
type way struct {
	from io.Reader
	cut  bool
}

// through returns the address of a way to target, both as host:port. change, if not nil, replaces answers.
func (c *cutter) through(ctx context.Context, target string, change func([]byte) []byte) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the way to %s: %w", target, err)
	}
	var p *tcpproxy.Proxy
	ready := make(chan struct{})
	p = tcpproxy.New(l, target, func(_ int, d tcpproxy.Direction, to io.Writer, from io.Reader) {
		<-ready
		if c.line != nil {
			if d == tcpproxy.Up {
				c.line.pass(to, from, nil)
			} else {
				c.line.pass(to, from, change)
			}
			return
		}
		if d == tcpproxy.Down {
			p.Copy(to, from, change)
			return
		}
		c.pass(to, from)
	})
	close(ready)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proxies = append(c.proxies, p)
	return p.Addr(), nil
}

// pass moves bytes to the broker. On a cut the next piece is passed on without its last byte, which ends a frame.
func (c *cutter) pass(to io.Writer, from io.Reader) {
	w := &way{from: from}
	c.mu.Lock()
	if c.ways == nil {
		c.ways = map[*way]bool{}
	}
	c.ways[w] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.ways, w)
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		c.mu.Lock()
		torn := w.cut
		c.mu.Unlock()
		if torn && n > 0 {
			_, _ = to.Write(buf[:n-1])
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut cuts each connection that there is, at the next frame that comes over it, and waits for that: a connection that
// is silent for a second is cut between two frames. It returns how many there were.
func (c *cutter) cut(ctx context.Context) (int, error) {
	c.mu.Lock()
	n := len(c.ways)
	ways := make([]*way, 0, n)
	for w := range c.ways {
		w.cut = true
		ways = append(ways, w)
	}
	c.mu.Unlock()
	if n == 0 {
		return 0, fmt.Errorf("cut connections: there are none")
	}
	deadline := time.Now().Add(time.Second)
	for time.Now().Before(deadline) {
		if err := wait(ctx, time.Millisecond); err != nil {
			return n, err
		}
		if !c.any(ways) {
			return n, nil
		}
	}
	for _, w := range ways {
		if conn, ok := w.from.(net.Conn); ok {
			_ = conn.Close()
		}
	}
	return n, nil
}

// any tells whether one of the ways is still there.
func (c *cutter) any(ways []*way) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range ways {
		if c.ways[w] {
			return true
		}
	}
	return false
}

func (c *cutter) close() {
	for _, p := range c.proxies {
		p.Close()
	}
}

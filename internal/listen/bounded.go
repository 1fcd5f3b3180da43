package listen

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// bounded is a listener with a bound on the connections that are open at a time: one more closes the oldest without a
// request, or the oldest of all if each has one. Connections on which no request ever ends delay nobody else.
type bounded struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*counted // in the order of their last requests
}

// counted is a connection of a bounded listener.
type counted struct {
	net.Conn
	of     *bounded
	active bool // the header of a request was read, and the request has not ended
}

// Accept waits for a connection.
func (b *bounded) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	k := &counted{Conn: c, of: b}
	if oldest := b.add(k); oldest != nil {
		_ = oldest.Close()
	}
	return k, nil
}

// add adds a connection. If there are too many it returns the one to close.
func (b *bounded) add(c *counted) (oldest *counted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) >= b.most {
		i := slices.IndexFunc(b.open, func(k *counted) bool { return !k.active })
		oldest = b.open[max(0, i)]
	}
	b.open = append(b.open, c)
	return oldest
}

// state notes the state of a connection: it is the hook of the server.
func (b *bounded) state(c net.Conn, state http.ConnState) {
	if secure, ok := c.(interface{ NetConn() net.Conn }); ok { // of TLS
		c = secure.NetConn()
	}
	k, ok := c.(*counted)
	if !ok || state != http.StateActive && state != http.StateIdle {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	k.active = state == http.StateActive
	if i := slices.Index(b.open, k); i >= 0 {
		b.open = append(slices.Delete(b.open, i, i+1), k)
	}
}

// Close closes the connection.
func (c *counted) Close() error {
	b := c.of
	b.mu.Lock()
	b.open = slices.DeleteFunc(b.open, func(k *counted) bool { return k == c })
	b.mu.Unlock()
	return c.Conn.Close()
}

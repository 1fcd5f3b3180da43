package listen

import (
	"net"
	"sync"
)

// bounded is a listener with a bound on the connections that are open at a time: more wait to be accepted.
type bounded struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newBounded(l net.Listener, most int) *bounded {
	return &bounded{Listener: l, free: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept waits for a connection, and before that until there may be another one.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.free <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &counted{Conn: c, free: b.free}, nil
}

// Close stops listening.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// counted is a connection that makes room for another one when it is closed.
type counted struct {
	net.Conn
	free chan struct{}
	once sync.Once
}

// Close closes the connection.
func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.free })
	return err
}

package library

import (
	"net"
	"sync"
	"time"
)

// EndGrace is the time that a library may take to report the end of a connection.
const EndGrace = time.Second

// Conn is a network connection for a library that does not report the end of its connection. It passes reads and writes
// through unchanged.
type Conn struct {
	net.Conn
	// Ended is closed when a read or write has failed, or when the connection was closed. Libraries close it after any
	// failure, but perhaps late.
	Ended chan struct{}
	// Overdue is closed [EndGrace] after Ended: the library should have reported the end by then.
	Overdue chan struct{}
	once    sync.Once
}

// NewConn returns conn with notice of its end.
func NewConn(conn net.Conn) *Conn {
	return &Conn{Conn: conn, Ended: make(chan struct{}), Overdue: make(chan struct{})}
}

func (c *Conn) end() {
	c.once.Do(func() {
		close(c.Ended)
		time.AfterFunc(EndGrace, func() { close(c.Overdue) })
	})
}

// HasEnded reports whether the connection has ended.
func (c *Conn) HasEnded() bool {
	select {
	case <-c.Ended:
		return true
	default:
		return false
	}
}

// Read implements [net.Conn].
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.end()
	}
	return n, err
}

// Write implements [net.Conn].
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.end()
	}
	return n, err
}

// Close implements [net.Conn].
func (c *Conn) Close() error {
	c.end()
	return c.Conn.Close()
}

// Silence is a logger that discards everything, for libraries that otherwise write to standard error.
type Silence struct{}

// Debugf does nothing, like the others.
func (Silence) Debugf(string, ...any) {}

// Infof does nothing.
func (Silence) Infof(string, ...any) {}

// Warningf does nothing.
func (Silence) Warningf(string, ...any) {}

// Errorf does nothing.
func (Silence) Errorf(string, ...any) {}

// Debug does nothing.
func (Silence) Debug(string) {}

// Info does nothing.
func (Silence) Info(string) {}

// Warning does nothing.
func (Silence) Warning(string) {}

// Error does nothing.
func (Silence) Error(string) {}

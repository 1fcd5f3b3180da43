package transport

import (
	"net"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Metered is a network connection that measures its reader's wait for the peer, as opposed to copying available bytes.
// One goroutine may read and one may write at a time.
type Metered struct {
	net.Conn
	in     *driver.Meter
	polled polledConn
}

// Meter returns conn with a meter. The waits are exact for TCP connections on Unix systems; for others, all the time in
// Read counts.
func Meter(conn net.Conn) *Metered {
	m := &Metered{Conn: conn, in: driver.NewMeter()}
	if tcp, ok := conn.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			m.polled.init(m, raw)
		}
	}
	return m
}

// Reading returns the reader's wait for bytes from the peer.
func (m *Metered) Reading() driver.Idle { return m.in.Idle() }

// Read implements [net.Conn].
func (m *Metered) Read(b []byte) (int, error) {
	if m.polled.usable() {
		return m.polled.read(b)
	}
	m.in.Begin()
	defer m.in.End()
	return m.Conn.Read(b)
}

// opError returns an error in the form of the net package.
func (m *Metered) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: m.LocalAddr(), Addr: m.RemoteAddr(), Err: err}
}

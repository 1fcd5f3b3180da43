package gate

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLeft(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn) error{
		"close": (*net.TCPConn).Close,
		"half":  (*net.TCPConn).CloseWrite,
		"reset": func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			client, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			defer client.Close()
			server, err := l.Accept()
			require.NoError(t, err)
			defer server.Close()
			_, err = client.Write([]byte("not read"))
			require.NoError(t, err)
			assert.False(t, PeerClosed(server))
			require.NoError(t, leave(client.(*net.TCPConn)))
			assert.Eventually(t, func() bool { return PeerClosed(server) }, time.Minute, time.Millisecond)
			require.NoError(t, server.Close())
			assert.False(t, PeerClosed(server), "a connection closed on our side")
		})
	}
	a, b := net.Pipe()
	defer a.Close()
	require.NoError(t, b.Close())
	assert.False(t, PeerClosed(a), "not of the system's connections")
}

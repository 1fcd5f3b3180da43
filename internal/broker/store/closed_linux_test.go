package store

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestAwaitEndsWithTheClient: a client that has gone is noticed behind unread input, as only Linux reports it.
func TestAwaitEndsWithTheClient(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn) error{
		"close": (*net.TCPConn).Close,
		"half":  (*net.TCPConn).CloseWrite,
		"reset": func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
			defer l.Close()
			client := musttest.Get(net.Dial("tcp", l.Addr().String()))(t)
			defer client.Close()
			g, s, _ := rig(t)
			g.Conn = musttest.Get(l.Accept())(t)
			defer g.Conn.Close()
			_, err := client.Write([]byte("not read"))
			require.NoError(t, err)
			assert.False(t, peerClosed(g.Conn), "it waits")
			require.NoError(t, leave(client.(*net.TCPConn)))
			require.NoError(t, g.Await(sendOne(s, "a"), nil))
		})
	}
}

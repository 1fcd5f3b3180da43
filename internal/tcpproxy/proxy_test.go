package tcpproxy

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// echo sends the bytes of each connection back over it.
func echo(t *testing.T) string {
	t.Helper()
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return c
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func hear(t *testing.T, c net.Conn, text string) {
	t.Helper()
	b := make([]byte, len(text))
	_, err := io.ReadFull(c, b)
	require.NoError(t, err)
	require.Equal(t, text, string(b))
}

func TestProxy(t *testing.T) {
	p := New(listen(t), echo(t), nil)
	defer p.Close()
	c := dial(t, p)
	say(t, c, "hello")
	hear(t, c, "hello")

	p.Freeze()
	say(t, c, "later")
	require.NoError(t, c.SetDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorContains(t, err, "timeout")

	p.Cut()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = net.Dial("tcp", p.Addr())
	require.ErrorContains(t, err, "refused")
}

func TestReset(t *testing.T) {
	p := New(listen(t), echo(t), nil)
	defer p.Close()
	c := dial(t, p)
	say(t, c, "hello")
	hear(t, c, "hello")
	p.Reset()
	_, err := c.Read(make([]byte, 1))
	require.ErrorContains(t, err, "reset")
}

func TestStream(t *testing.T) {
	var p *Proxy
	ready := make(chan struct{})
	p = New(listen(t), echo(t), func(number int, d Direction, to io.Writer, from io.Reader) {
		<-ready
		var change func([]byte) []byte
		if number == 1 && d == Down {
			change = bytes.ToUpper
		}
		p.Copy(to, from, change)
	})
	close(ready)
	defer p.Close()
	first := dial(t, p)
	say(t, first, "hello")
	hear(t, first, "hello")
	second := dial(t, p)
	say(t, second, "hello")
	hear(t, second, "HELLO")
}

func TestNobodyThere(t *testing.T) {
	p := New(listen(t), "127.0.0.1:1", nil)
	defer p.Close()
	_, err := dial(t, p).Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

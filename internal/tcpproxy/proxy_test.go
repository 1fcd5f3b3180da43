package tcpproxy

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
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
	c := musttest.Get(net.Dial("tcp", p.Addr()))(t)
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

// through returns a proxy, which ends with the test.
func through(t *testing.T, cfg Config) *Proxy {
	t.Helper()
	p := musttest.Get(New(cfg))(t)
	t.Cleanup(p.Close)
	return p
}

func TestProxy(t *testing.T) {
	p := through(t, Config{Target: echo(t)})
	c := dial(t, p)
	say(t, c, "hello")
	hear(t, c, "hello")

	p.Freeze()
	say(t, c, "later")
	require.NoError(t, c.SetDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorContains(t, err, "timeout")
	require.EqualValues(t, 5, p.Received())

	p.Cut()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = net.Dial("tcp", p.Addr())
	require.ErrorContains(t, err, "refused")

	before := p.Addr()
	require.NoError(t, p.Restore())
	require.Equal(t, before, p.Addr())
	c = dial(t, p)
	say(t, c, "again")
	hear(t, c, "again")
	require.EqualValues(t, 2, p.Connections())
}

// TestTear: a busy connection ends within a frame, a silent one later, and new ones go through.
func TestTear(t *testing.T) {
	p := through(t, Config{Target: echo(t)})
	busy, silent := dial(t, p), dial(t, p)
	for _, c := range []net.Conn{busy, silent} {
		say(t, c, "hello")
		hear(t, c, "hello")
	}
	torn := make(chan int)
	go func() {
		n, _ := p.Tear(t.Context())
		torn <- n
	}()
	require.Eventually(t, func() bool { return p.whole() == 0 }, time.Minute, time.Microsecond)
	say(t, busy, "frame")
	rest, _ := io.ReadAll(busy)
	require.NotEqual(t, "frame", string(rest))
	require.Equal(t, 2, <-torn)
	_, err := silent.Read(make([]byte, 1))
	require.Error(t, err)
	c := dial(t, p)
	say(t, c, "hello")
	hear(t, c, "hello")
}

// whole returns the number of connections that are neither torn nor ended. A busy machine may miss the second between.
func (p *Proxy) whole() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if !c.torn {
			n++
		}
	}
	return n
}

func TestAnnounced(t *testing.T) {
	target := echo(t)
	p := through(t, Config{Target: target, Announced: target})
	require.Len(t, p.Addr(), len(target))
	other := through(t, Config{Target: target, Announced: target, For: p})
	for _, by := range []*Proxy{p, other} {
		c := dial(t, by)
		say(t, c, target)
		hear(t, c, p.Addr())
	}
}

func TestStream(t *testing.T) {
	p := through(t, Config{Target: echo(t), Stream: func(number int, d Direction, to io.Writer, from io.Reader) {
		if number == 1 && d == Down {
			_, _ = io.WriteString(to, "second: ")
		}
		_, _ = io.Copy(to, from)
	}})
	for _, want := range []string{"hello", "second: hello"} {
		c := dial(t, p)
		say(t, c, "hello")
		hear(t, c, want)
	}
}

func TestNobodyThere(t *testing.T) {
	c, err := net.Dial("tcp", through(t, Config{Target: "127.0.0.1:1"}).Addr())
	if err == nil {
		_, err = c.Read(make([]byte, 1))
		_ = c.Close()
	}
	require.ErrorContains(t, err, "reset")
}

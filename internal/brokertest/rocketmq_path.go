//go:build unix

package brokertest

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/tcpproxy"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// rocketPath is a way to the broker: a proxy before the name server, which tells clients the address of a second proxy
// before the broker.
type rocketPath struct {
	t                      testing.TB
	toNameServer, toBroker string
	nameServer, broker     *tcpproxy.Proxy
	down                   atomic.Int64 // bytes from either
	up                     atomic.Int64 // bytes from clients, also while frozen
}

// countingReader adds the bytes that are read from Reader to n.
type countingReader struct {
	io.Reader
	n *atomic.Int64
}

func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// NewRocketMQPath returns a [drivertest.Path] to a broker whose name server is at the other address, or at the same.
func NewRocketMQPath(t testing.TB, nameServer, broker string) drivertest.Path {
	p := &rocketPath{t: t, toNameServer: nameServer, toBroker: broker}
	p.listen(listenLike(t, nameServer), listenLike(t, broker))
	t.Cleanup(func() {
		p.Cut() // both: the streams of one look at the gate of the other
		p.nameServer.Close()
		p.broker.Close()
	})
	return p
}

func (p *rocketPath) listen(nameServer, broker net.Listener) {
	// Addresses of the same length can be exchanged within frames.
	theirs, ours := []byte(p.toBroker), []byte(broker.Addr().String())
	require.Len(p.t, ours, len(theirs))
	var gate *tcpproxy.Proxy // while it is frozen, both stop
	ready := make(chan struct{})
	stream := func(_ int, d tcpproxy.Direction, to io.Writer, from io.Reader) {
		<-ready
		if d == tcpproxy.Up {
			from = countingReader{from, &p.up}
		}
		gate.Copy(to, from, func(b []byte) []byte {
			if d == tcpproxy.Up {
				return b
			}
			p.down.Add(int64(len(b)))
			return bytes.ReplaceAll(b, theirs, ours)
		})
	}
	gate = tcpproxy.New(broker, p.toBroker, stream)
	p.nameServer, p.broker = tcpproxy.New(nameServer, p.toNameServer, stream), gate
	close(ready)
}

// listenLike returns a listener on a port with as many digits as the target's.
func listenLike(t testing.TB, target string) net.Listener {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		if len(l.Addr().String()) == len(target) {
			return l
		}
		_ = l.Close()
	}
}

func (p *rocketPath) URL() string { return "rocketmq://" + p.nameServer.Addr() }

func (p *rocketPath) Freeze() { p.broker.Freeze() }

func (p *rocketPath) Cut() {
	p.nameServer.Cut()
	p.broker.Cut()
}

// Restore listens again at the same addresses.
func (p *rocketPath) Restore() {
	nameServer, err := net.Listen("tcp", p.nameServer.Addr())
	require.NoError(p.t, err)
	broker, err := net.Listen("tcp", p.broker.Addr())
	require.NoError(p.t, err)
	p.listen(nameServer, broker)
}

func (p *rocketPath) Connections() int64 { return p.nameServer.Opened() + p.broker.Opened() }

func (p *rocketPath) Received() int64 { return p.down.Load() }

// Sent counts the requests to the name server too, see [drivertest.Path].
func (p *rocketPath) Sent() int64 { return p.up.Load() }

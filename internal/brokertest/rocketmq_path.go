//go:build unix

package brokertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/tcpproxy"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// rocketPath is a way to the broker: a proxy before the name server, which announces the address of a second proxy,
// before the broker.
type rocketPath struct {
	t                  testing.TB
	nameServer, broker *tcpproxy.Proxy
}

// NewRocketMQPath returns a [drivertest.Path] to a broker and its name server, which may have the same address.
func NewRocketMQPath(t testing.TB, nameServer, broker string) drivertest.Path {
	p := &rocketPath{t: t}
	var err error
	p.broker, err = tcpproxy.New(tcpproxy.Config{Target: broker, Announced: broker})
	require.NoError(t, err)
	t.Cleanup(p.broker.Close)
	p.nameServer, err = tcpproxy.New(tcpproxy.Config{Target: nameServer, Announced: broker, For: p.broker})
	require.NoError(t, err)
	t.Cleanup(p.nameServer.Close)
	return p
}

func (p *rocketPath) URL() string { return "rocketmq://" + p.nameServer.Addr() }

func (p *rocketPath) Freeze() {
	p.nameServer.Freeze()
	p.broker.Freeze()
}

func (p *rocketPath) Cut() {
	p.nameServer.Cut()
	p.broker.Cut()
}

func (p *rocketPath) Restore() {
	require.NoError(p.t, p.nameServer.Restore())
	require.NoError(p.t, p.broker.Restore())
}

func (p *rocketPath) Connections() int64 { return p.nameServer.Connections() + p.broker.Connections() }

func (p *rocketPath) Received() int64 { return p.nameServer.Received() + p.broker.Received() }

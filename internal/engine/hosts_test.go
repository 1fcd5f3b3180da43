package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"

	embedded "github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// hosted are drivers that connect to several hosts of a URL.
func hosted() map[string]driver.Factory {
	return map[string]driver.Factory{"amqp": amqp.Factory(), "stomp": stomp.Factory()}
}

// brokersOf starts two brokers that do not know each other, and has the plan use both.
func brokersOf(t *testing.T, p *flat) (list []*embedded.Broker) {
	t.Helper()
	protocol, url := p.Producer.Factory.Name, p.Producer.Factory.Schemes[0]+"://"
	for i := range 2 {
		b, err := embedded.Start(embedded.Config{Listen: map[string]string{protocol: "127.0.0.1:0"}})
		require.NoError(t, err)
		t.Cleanup(b.Close)
		list = append(list, b)
		if i > 0 {
			url += ","
		}
		url += b.Addr(protocol)
	}
	for _, e := range []*engine.Endpoint{p.Producer, p.Consumer} {
		e.URL, e.ConnectTimeout, e.Options = url, 30*time.Second, e.Factory.NewOptions()
	}
	p.FakeClock, p.DrainTimeout = false, 30*time.Second
	return list
}

// TestHosts: the counts of each host are those of its broker. Spread workers are divided evenly; others are all at the
// first host.
func TestHosts(t *testing.T) {
	tests := []struct {
		name string
		edit func(*plan.Group)
		want [2]result.BrokerHost // without messages
	}{
		{"order", func(g *plan.Group) { g.Hosts = plan.InOrder }, [2]result.BrokerHost{
			{Connections: 8, Producers: 4, Consumers: 4}, {},
		}},
		{"spread", func(g *plan.Group) { g.Hosts = plan.Spread }, [2]result.BrokerHost{
			{Connections: 4, Producers: 2, Consumers: 2}, {Connections: 4, Producers: 2, Consumers: 2},
		}},
		{"shared connections", func(g *plan.Group) {
			g.Hosts, g.Producers, g.Consumers = plan.Spread, 7, 8
			g.SharedConnections, g.ProducerConnections, g.ConsumerConnections = true, 4, 2
		}, [2]result.BrokerHost{
			{Connections: 3, Producers: 4, Consumers: 4}, {Connections: 3, Producers: 3, Consumers: 4},
		}},
	}
	for client, f := range hosted() {
		for _, tt := range tests {
			t.Run(client+"/"+tt.name, func(t *testing.T) {
				const messages = 1000
				p := newPlan(f, func(p *flat) {
					p.Producers, p.Consumers, p.MaxPending, p.Count = 4, 4, 5, messages
					tt.edit(p.Group)
				})
				brokers := brokersOf(t, p)
				s, _ := run(t, p, nil)
				require.True(t, s.Outcome.Success, "%q", s.Problems())
				require.Len(t, s.BrokerHosts, 2)
				for i, b := range brokers {
					h := s.BrokerHosts[i]
					n := b.Stats().Total
					want := tt.want[i]
					want.Name, want.Sent, want.Completed, want.Received = b.Addr(f.Name), n.Stored, n.Stored, n.Settled
					require.Equal(t, want, h)
				}
				require.EqualValues(t, messages, s.BrokerHosts[0].Completed+s.BrokerHosts[1].Completed)
				require.EqualValues(t, messages, s.BrokerHosts[0].Received+s.BrokerHosts[1].Received)
				for _, w := range s.Workers {
					require.Len(t, w.BrokerHosts, 1)
				}
			})
		}
	}
}

// TestHostsAfterALoss: workers move from a broker that dies to the other one, and the counts of each host stay right.
func TestHostsAfterALoss(t *testing.T) {
	for client, dies := range map[string]int{"amqp": 0, "stomp": 1} {
		f := hosted()[client]
		t.Run(fmt.Sprintf("%s/host %d dies", client, dies), func(t *testing.T) {
			t.Parallel()
			p := newPlan(f, func(p *flat) {
				p.Producers, p.Consumers, p.MaxPending, p.Rate = 4, 4, 50, rate("2000")
				p.Hosts, p.Reconnect = plan.Spread, true
			})
			brokers := brokersOf(t, p)
			p.DrainTimeout = time.Second // what was left at the dead one will not come
			stop, killed, stopped := make(chan struct{}), false, false
			rep := &recorder{interval: func(s *stats.Snapshot) error {
				switch {
				case !killed && s.Total.Get(result.Completed) > 0:
					killed = true
					brokers[dies].Close()
				case killed && !stopped && s.Outage != nil && s.Outage.Reconnects >= 4 && s.Get(result.Completed) > 0:
					stopped = true
					close(stop)
				}
				return nil
			}}
			s, err := carryOut(t.Context(), stop, p, rep)
			require.NoError(t, err)
			check(t, p, s, rep)
			require.NoError(t, s.Err)
			require.NotEmpty(t, s.Outages)
			dead, alive := s.BrokerHosts[dies], s.BrokerHosts[1-dies]
			require.Equal(t, 2, dead.Producers)
			require.Equal(t, 2, dead.Consumers)
			require.Equal(t, 4, alive.Producers)
			require.Equal(t, 4, alive.Consumers)
			n := brokers[1-dies].Stats().Total
			require.Equal(t, []uint64{n.Stored, n.Stored, n.Settled}, []uint64{alive.Sent, alive.Completed, alive.Received})
			n = brokers[dies].Stats().Total
			require.Equal(t, dead.Sent, dead.Completed+dead.Unconfirmed, "all that was sent to it has ended")
			require.GreaterOrEqual(t, n.Stored, dead.Completed)
			require.LessOrEqual(t, n.Stored, dead.Completed+dead.Unconfirmed)
			require.GreaterOrEqual(t, dead.Received, n.Settled)
			require.LessOrEqual(t, dead.Received, n.Delivered)
			require.Equal(t, s.Total.Get(result.Completed), dead.Completed+alive.Completed)
			require.Equal(t, s.Total.Get(result.Sent), dead.Sent+alive.Sent)
			require.Equal(t, s.Total.Get(result.Unconfirmed), dead.Unconfirmed)
			require.Equal(t, s.Total.Get(result.Received), dead.Received+alive.Received)
			moved := 0
			for _, w := range s.Workers {
				if len(w.BrokerHosts) == 2 {
					moved++
					require.Equal(t, []string{dead.Name, alive.Name}, w.BrokerHosts)
				}
			}
			require.Equal(t, 4, moved)
		})
	}
}

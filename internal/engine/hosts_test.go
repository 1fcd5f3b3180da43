package engine_test

import (
	"fmt"
	"slices"
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

// at counts the producers and the consumers that were connected to a host.
func at(s *stats.Summary, host string) (n [2]int) {
	for _, w := range s.Workers {
		if slices.Contains(w.BrokerHosts, host) {
			side := 0
			if w.Producers == nil {
				side = 1
			}
			n[side]++
		}
	}
	return n
}

// TestHosts: spread workers are divided evenly; others are all at the first host. The messages are where workers are.
func TestHosts(t *testing.T) {
	tests := []struct {
		name string
		edit func(*plan.Group)
		want [2][2]int // producers and consumers
	}{
		{"order", func(g *plan.Group) { g.Hosts = plan.InOrder }, [2][2]int{{4, 4}, {}}},
		{"spread", func(g *plan.Group) { g.Hosts = plan.Spread }, [2][2]int{{2, 2}, {2, 2}}},
		{"shared connections", func(g *plan.Group) {
			g.Hosts, g.Producers, g.Consumers = plan.Spread, 7, 8
			g.SharedConnections, g.ProducerConnections, g.ConsumerConnections = true, 4, 2
		}, [2][2]int{{4, 4}, {3, 4}}},
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
				var stored, settled uint64
				for i, b := range brokers {
					n := b.Stats().Total
					require.Equal(t, tt.want[i], at(s, b.Addr(f.Name)))
					require.Equal(t, tt.want[i][0] > 0, n.Stored > 0)
					require.Equal(t, n.Stored, n.Settled)
					stored, settled = stored+n.Stored, settled+n.Settled
				}
				require.EqualValues(t, messages, stored)
				require.EqualValues(t, messages, settled)
				for _, w := range s.Workers {
					require.Len(t, w.BrokerHosts, 1)
				}
			})
		}
	}
}

// TestHostsAfterALoss: workers move from a broker that dies to the other one, and the counts stay right.
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
			dead, alive := brokers[dies].Addr(f.Name), brokers[1-dies].Addr(f.Name)
			require.Equal(t, [2]int{2, 2}, at(s, dead))
			require.Equal(t, [2]int{4, 4}, at(s, alive))
			stored := brokers[dies].Stats().Total.Stored + brokers[1-dies].Stats().Total.Stored
			require.GreaterOrEqual(t, stored, s.Total.Get(result.Completed))
			require.LessOrEqual(t, stored, s.Total.Get(result.Completed)+s.Total.Get(result.Unconfirmed))
			moved := 0
			for _, w := range s.Workers {
				if len(w.BrokerHosts) == 2 {
					moved++
					require.Equal(t, []string{dead, alive}, w.BrokerHosts)
				}
			}
			require.Equal(t, 4, moved)
		})
	}
}

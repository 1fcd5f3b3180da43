package cli

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// twoBrokers starts two independent brokers.
func twoBrokers(t *testing.T, protocol string) (list [2]*broker.Broker) {
	t.Helper()
	for i := range list {
		b := musttest.Get(broker.Start(broker.Config{Listen: map[string]string{protocol: "127.0.0.1:0"}}))(t)
		t.Cleanup(b.Close)
		list[i] = b
	}
	return list
}

// TestSpread spreads a load over two brokers, with native clients and libraries: every output has the counts of each
// broker.
func TestSpread(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{broker.AMQP, broker.STOMP} {
		for _, client := range []string{"native", "library"} {
			t.Run(protocol+" "+client, func(t *testing.T) {
				t.Parallel()
				b := twoBrokers(t, protocol)
				url := fmt.Sprintf("%s://%s,%s", protocol, b[0].Addr(protocol), b[1].Addr(protocol))
				dir := filepath.Join(t.TempDir(), "result")
				got := callReal(protocol, "client", "--client", client, "--url", url, "--hosts", "spread", "--producers", "4", "--consumers", "2",
					"--max-pending", "5", "--message-count", "1000", "--verify", "--result", dir, "queue://Q")
				require.Equal(t, exitOK, got.status, got.stderr)
				require.Empty(t, got.stderr)
				r := musttest.Get(result.Read(dir))(t)
				require.Len(t, r.BrokerHosts, 2)
				for i := range b {
					n := b[i].Stats().Total
					h := r.BrokerHosts[i]
					require.Equal(t, result.BrokerHost{
						Name: b[i].Addr(protocol), Connections: 3, Producers: 2, Consumers: 1, Sent: n.Stored, Completed: n.Stored, Received: n.Settled,
					}, h)
					require.Contains(t, got.stdout, fmt.Sprintf("\n--- host %s: 3 connections; 2 producers, sent %d, completed %d; 1 consumer, received %d\n",
						h.Name, h.Sent, h.Completed, h.Received))
				}
				require.EqualValues(t, 1000, r.BrokerHosts[0].Completed+r.BrokerHosts[1].Completed)
				for i, w := range r.Workers {
					require.Equal(t, []string{b[i%2].Addr(protocol)}, w.BrokerHosts, w.Name)
				}
				plan := callReal(protocol, "client", "--url", url, "--hosts", "spread", "--dry-run")
				require.Contains(t, plan.stdout, "  hosts: spread\n")
				require.Contains(t, string(r.Plan), `"hosts": "spread"`)
			})
		}
	}
}

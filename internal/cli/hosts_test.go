package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// TestSpread spreads a load over two brokers, with native clients and libraries: the result has the
// broker of each worker.
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
				require.Equal(t, result.StatusOK, got.status, got.stderr)
				require.Empty(t, got.stderr)
				r := musttest.Get(result.Read(dir))(t)
				require.EqualValues(t, 1000, b[0].Stats().Total.Stored+b[1].Stats().Total.Stored)
				require.EqualValues(t, 1000, b[0].Stats().Total.Settled+b[1].Stats().Total.Settled)
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

// TestFailoverPlan: a failover URL changes the plan, and flags take precedence.
func TestFailoverPlan(t *testing.T) {
	t.Parallel()
	const url = "failover:(tcp://u:s3cret@a:1?wireFormat.x=1,tcp://u:s3cret@b:2)?jms.password=s3cret"
	for _, tt := range []struct {
		flags         string
		want, without []string
	}{
		{"", []string{"  reconnect: true\n", "  hosts: spread\n", "implies --hosts spread"}, nil},
		{"--hosts spread", []string{"  hosts: spread\n", "  reconnect: true\n"}, nil},
		{"--hosts order", []string{"  reconnect: true\n"}, []string{"hosts:", "implies --hosts"}},
		{"--reconnect=false", nil, []string{"reconnect:"}},
		{"--reconnect --reconnect-timeout 5s", []string{"  reconnect-timeout: 5s\n"}, nil},
	} {
		got := callReal(append([]string{"amqp", "client", "--url", url, "--dry-run"}, strings.Fields(tt.flags)...)...)
		require.Equal(t, result.StatusOK, got.status, got.stderr)
		require.NotContains(t, got.stdout+got.stderr, "s3cret")
		plan := withoutComments(got.stdout)
		require.Contains(t, plan, "  url: tcp://u@a:1,b:2\n")
		require.Contains(t, got.stdout, "# note: --url: without effect: jms.password, wireFormat.x")
		require.Equal(t, !strings.Contains(tt.flags, "--reconnect"), strings.Contains(got.stdout, "the failover URL implies --reconnect"))
		for _, text := range tt.want {
			require.Contains(t, got.stdout, text, tt.flags)
		}
		for _, text := range tt.without {
			require.NotContains(t, got.stdout, text, tt.flags)
		}
	}
}

func TestFailoverRefused(t *testing.T) {
	for _, tt := range []struct{ args, want, hint string }{
		{"amqp client --url failover:(tcp://u:s3cret@a)?backup=true", "the failover URL cannot have backup", "--reconnect-delay"},
		{"amqp client --url failover:(stomp://u:s3cret@a)", "stomp is no scheme of amqp", "use perfmq stomp client"},
		{"stomp producer --url failover:(tcp://u:s3cret@a,b)", "the failover URL cannot have hosts of several schemes", "write it as"},
		{"amqp client --url failover:(tcp://u:s3cret@a:x)", `port "x" is not a number`, ""},
		{"rocketmq client --url failover:(rocketmq://u:s3cret@a,rocketmq://u:s3cret@b)", "rocketmq has no failover URLs", "write rocketmq://"},
	} {
		got := callReal(strings.Fields(tt.args)...)
		require.Equal(t, result.StatusUsage, got.status, tt.args)
		require.NotContains(t, got.stderr, "u:")
		require.Contains(t, got.stderr, tt.want)
		require.Contains(t, got.stderr, tt.hint)
		require.NotContains(t, got.stdout+got.stderr, "s3cret")
	}
}

// TestFailover: a run with a failover URL, from the command line or a scenario, connects to the reachable host.
func TestFailover(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{broker.AMQP, broker.STOMP} {
		b := twoBrokers(t, protocol)
		dead := b[0].Addr(protocol)
		b[0].Close()
		url := fmt.Sprintf("failover:(tcp://u:s3cret@%s,tcp://u:s3cret@%s)?randomize=false", dead, b[1].Addr(protocol))
		file := filepath.Join(t.TempDir(), "run.yaml")
		text := "broker: {protocol: " + protocol + ", url: \"" + url + "\"}\ngroups:\n" +
			"  senders: {role: producer, destination: queue://Q, message-count: 50}\n  readers: {role: consumer, destination: queue://Q}\n"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		for i, args := range [][]string{
			{protocol, "client", "--url", url, "--message-count", "50", "queue://Q"},
			{"run", file},
		} {
			dir := filepath.Join(t.TempDir(), "result")
			got := callReal(append(args, "--result", dir)...)
			require.Equal(t, result.StatusOK, got.status, got.stderr)
			require.NotContains(t, got.stdout+got.stderr, "s3cret")
			require.Contains(t, got.stdout, fmt.Sprintf("Connection brokerURL = tcp://u@%s,%s\n", dead, b[1].Addr(protocol)))
			r := musttest.Get(result.Read(dir))(t)
			require.NotContains(t, string(r.Plan), "s3cret")
			require.Contains(t, string(r.Plan), "tcp://u@"+dead)
			require.Contains(t, string(r.Plan), `"reconnect": true`)
			require.EqualValues(t, 50, r.Total.Consumers.Received)
			for _, w := range r.Workers {
				require.Equal(t, []string{b[1].Addr(protocol)}, w.BrokerHosts, w.Name)
			}
			require.EqualValues(t, 50*(i+1), b[1].Stats().Total.Settled)
		}
	}
}

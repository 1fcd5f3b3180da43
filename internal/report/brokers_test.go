package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

func TestWriteBrokers(t *testing.T) {
	t.Parallel()
	artemis := result.Broker{Protocol: "amqp", Product: "apache-activemq-artemis", Version: "2.40.0"}
	of := func(b result.Broker, name, side string) result.Broker { b.Name, b.Side = name, side; return b }
	for want, list := range map[string][]result.Broker{
		"": nil,
		"--- broker: apache-activemq-artemis 2.40.0\n": {artemis},
		"--- broker:              mystery\n":           {{Product: "mystery"}},
		"--- broker: apache-activemq-artemis 2.40.0 (producers)\n--- broker:       RabbitMQ 4.0.5 (consumers)\n": {
			of(artemis, "", "producers"), {Product: "RabbitMQ", Version: "4.0.5", Side: "consumers"},
		},
		"--- broker: apache-activemq-artemis 2.40.0 (a, b)\n--- broker:       RabbitMQ 4.0.5 (c)\n": {
			of(artemis, "a", ""), of(artemis, "b", ""), of(artemis, "a", ""), {Product: "RabbitMQ", Version: "4.0.5", Name: "c"},
		},
		"--- broker: a\\x1b[2J; --- broker: fake 1\n": {{Product: "a\x1b[2J\n--- broker: fake", Version: "1"}},
	} {
		var b strings.Builder
		writeBrokers(&b, list)
		assert.Equal(t, want, b.String())
	}
}

// Product and version are in every summary, without the secrets of the run.
func TestBrokersInOutputs(t *testing.T) {
	t.Parallel()
	r, dir := newTestResult(t, ResultOptions{})
	path := filepath.Join(t.TempDir(), "json")
	j, err := NewJSON(path, ResultOptions{})
	require.NoError(t, err)
	var console, benchmark bytes.Buffer
	f := NewFan(r, j, NewConsole(&console, ConsoleOptions{}), NewRocketMQ(&benchmark, ConsoleOptions{}))
	f.Secrets.Add("u", "hunter2")
	require.NoError(t, f.Start(clientRun()))
	s := summary(stats.Counters{}, closedLoop())
	s.Brokers = []result.Broker{
		{Name: "left", Protocol: "amqp", Product: "apache-activemq-artemis", Version: "2.40.0"},
		{Name: "right", Protocol: "stomp", Product: "hunter2 \x1b[2J" + strings.Repeat("x", 100_000)},
	}
	require.NoError(t, f.Summary(s))
	require.NoError(t, f.Close())
	got, err := result.Read(dir)
	require.NoError(t, err)
	require.Len(t, got.Brokers, 2)
	require.Equal(t, result.Broker{Name: "left", Protocol: "amqp", Product: "apache-activemq-artemis", Version: "2.40.0"}, got.Brokers[0])
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), `"brokers":[{"name":"left","protocol":"amqp","product":"apache-activemq-artemis","version":"2.40.0"},`)
	for _, out := range []string{string(text), console.String(), benchmark.String(), got.Brokers[1].Product} {
		require.NotContains(t, out, "hunter2")
		require.NotContains(t, out, strings.Repeat("x", 70_000))
	}
	for _, out := range []string{console.String(), benchmark.String()} {
		require.Contains(t, out, "--- broker: apache-activemq-artemis 2.40.0 (left)\n--- broker: *** \\x1b[2Jxxx")
	}
}

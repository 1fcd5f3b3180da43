package report

import (
	"bytes"
	"testing"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"
)

func TestHostLines(t *testing.T) {
	t.Parallel()
	hosts := []result.BrokerHost{
		{Name: "a:1", Connections: 3, Producers: 2, Consumers: 1, Sent: 12, Completed: 10, Unconfirmed: 2, Received: 7},
		{Name: "b\x1b:1", Connections: 1, Producers: 1, Sent: 5, Completed: 5},
	}
	require.Equal(t, []string{
		"host a:1: 3 connections; 2 producers, sent 12, completed 10, unconfirmed 2; 1 consumer, received 7",
		`host b\x1b:1: 1 connection; 1 producer, sent 5, completed 5; 0 consumers, received 0`,
	}, hostLines(hosts))
	hosts[0].Consumers, hosts[0].Received = 0, 0
	require.Equal(t, []string{
		"host a:1: 3 connections; 2 producers, sent 12, completed 10, unconfirmed 2",
		`host b\x1b:1: 1 connection; 1 producer, sent 5, completed 5`,
	}, hostLines(hosts))
	require.Empty(t, hostLines(nil))
}

// TestHostsInOutputs: the console and JSON have the figures per host.
func TestHostsInOutputs(t *testing.T) {
	t.Parallel()
	s := numbersRun()
	s.BrokerHosts = []result.BrokerHost{
		{Name: "a:1", Connections: 1, Producers: 1, Consumers: 1, Sent: 4000, Completed: 3900, Unconfirmed: 100, Received: 3800},
		{Name: "b:1", Connections: 2, Producers: 2, Consumers: 2, Sent: 5000, Completed: 5000, Received: 4200},
	}
	var console bytes.Buffer
	c := NewConsole(&console, ConsoleOptions{})
	require.NoError(t, c.Start(clientRun()))
	require.NoError(t, c.Summary(s))
	require.Contains(t, console.String(), "\n--- host a:1: 1 connection; 1 producer, sent 4000, completed 3900, unconfirmed 100; 1 consumer, received 3800\n"+
		"--- host b:1: 2 connections; 2 producers, sent 5000, completed 5000; 2 consumers, received 4200\n")
}

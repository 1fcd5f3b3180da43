package report

import (
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

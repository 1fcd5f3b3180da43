//go:build unix && failures

package brokertest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Clusters and pairs, which take a minute of processor time to start, are for `make failures`, which tests them before.

// TestRabbitMQCluster: three nodes are one cluster, also when the first one was killed and is back.
func TestRabbitMQCluster(t *testing.T) {
	c, err := LaunchRabbitMQCluster(t.Context(), 3)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	const ask = `io:format("~w ~p", [length(rabbit_mnesia:cluster_nodes(running)),
		vhost:get_metadata(rabbit_vhost:lookup(<<"/">>))]).`
	for range 2 {
		text, err := c.Nodes[2].Ctl(t.Context(), "eval", ask)
		require.NoError(t, err)
		require.Regexp(t, `^3 .*default_queue_type => <<"quorum">>`, text)
		c.Nodes[0].Kill()
		_, err = c.Ctl(t.Context(), "list_queues") // asks another one
		require.NoError(t, err)
		require.NoError(t, c.Nodes[0].Start(t.Context()))
	}
}

package result

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// The figures of a host add up over the parts of a merged result, whatever hosts each part has.
func TestMergedBrokerHosts(t *testing.T) {
	t.Parallel()
	first, other := timed(1, 0, 0), timed(2, 0, 0)
	first.BrokerHosts = []BrokerHost{
		{Name: "a:1", Connections: 1, Producers: 2, Consumers: 3, Sent: 10, Completed: 8, Unconfirmed: 2, Received: 5}, {Name: "b:1"},
	}
	other.BrokerHosts = []BrokerHost{
		{Name: "b:1", Connections: 4, Producers: 1, Sent: 7, Completed: 7},
		{Name: "a:1", Connections: 10, Producers: 20, Consumers: 30, Sent: 100, Completed: 80, Unconfirmed: 20, Received: 50},
	}
	before := asJSON(t, []*Result{first, other})
	m := musttest.Get(Merge(first, other))(t)
	require.Equal(t, before, asJSON(t, []*Result{first, other}), "the shards stay as they are")
	require.Equal(t, []BrokerHost{
		{Name: "a:1", Connections: 11, Producers: 22, Consumers: 33, Sent: 110, Completed: 88, Unconfirmed: 22, Received: 55},
		{Name: "b:1", Connections: 4, Producers: 1, Sent: 7, Completed: 7},
	}, m.BrokerHosts)
}

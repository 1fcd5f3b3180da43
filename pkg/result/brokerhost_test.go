package result

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpreadOverHosts(t *testing.T) {
	t.Parallel()
	require.Empty(t, SpreadOverHosts(nil))
	require.Empty(t, SpreadOverHosts([]BrokerHost{{Name: "a:1"}, {Name: "b:1"}}), "there was no worker")
	hosts := []BrokerHost{
		{Name: "a:1", Producers: 1, Completed: 30, Consumers: 2, Received: 7},
		{Name: "b:1", Producers: 1, Completed: 10, Consumers: 1, Received: 0},
	}
	require.Equal(t, []Spread{
		{Role: "producers", Hosts: 2, Minimum: 10, Median: 20, Maximum: 30},
		{Role: "consumers", Hosts: 2, Minimum: 0, Median: 3, Maximum: 7},
	}, SpreadOverHosts(hosts))
	require.Equal(t, []Spread{{Role: "producers", Hosts: 3, Minimum: 0, Median: 10, Maximum: 30}},
		SpreadOverHosts([]BrokerHost{{Completed: 30, Producers: 1}, {Completed: 10, Producers: 1}, {}}))
}

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
	m, err := Merge(first, other)
	require.NoError(t, err)
	require.Equal(t, before, asJSON(t, []*Result{first, other}), "the shards stay as they are")
	require.Equal(t, []BrokerHost{
		{Name: "a:1", Connections: 11, Producers: 22, Consumers: 33, Sent: 110, Completed: 88, Unconfirmed: 22, Received: 55},
		{Name: "b:1", Connections: 4, Producers: 1, Sent: 7, Completed: 7},
	}, m.BrokerHosts)
	require.Equal(t, []Spread{
		{Role: "producers", Hosts: 2, Minimum: 7, Median: 47, Maximum: 88},
		{Role: "consumers", Hosts: 2, Minimum: 0, Median: 27, Maximum: 55},
	}, m.BrokerHostSpreads)
}

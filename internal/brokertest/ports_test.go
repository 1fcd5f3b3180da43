//go:build unix

package brokertest

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestDefaultPortsAreClaimed: of brokers that are started at once, one gets a wanted port, and the next one when it has
// ended.
func TestDefaultPortsAreClaimed(t *testing.T) {
	t.Setenv(CacheEnv, t.TempDir())
	var before daemon
	free := musttest.Get(before.pickPorts(0))(t)
	before.unclaim()
	brokers := make([]daemon, 8)
	got := make([]int, len(brokers))
	var all sync.WaitGroup
	for i := range brokers {
		all.Go(func() {
			ports, err := brokers[i].pickPorts(0, free[0])
			require.NoError(t, err) //nolint:testifylint // it is a failure in any case
			got[i] = ports[1]
		})
	}
	all.Wait()
	first := -1
	for i, port := range got {
		if port == free[0] {
			require.Negative(t, first, "two brokers have the port")
			first = i
		}
	}
	require.GreaterOrEqual(t, first, 0, "nobody has the port")
	for range 2 { // it keeps it when it picks again
		ports := musttest.Get(brokers[first].pickPorts(free[0]))(t)
		require.Equal(t, free, ports)
	}
	brokers[first].unclaim()
	other := (first + 1) % len(brokers)
	ports := musttest.Get(brokers[other].pickPorts(free[0]))(t)
	require.Equal(t, free, ports)
	brokers[other].unclaim()
}

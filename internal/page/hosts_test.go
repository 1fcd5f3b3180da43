package page

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

func TestHostTable(t *testing.T) {
	t.Parallel()
	r, _ := resultOf(t, usual())
	run, err := NewRun("run", r)
	require.NoError(t, err)
	require.Empty(t, hostTable(run).Rows)
	run.Result.BrokerHosts = []result.BrokerHost{
		{Name: "a:1", Connections: 3, Producers: 2, Consumers: 1, Sent: 1200, Completed: 1100, Unconfirmed: 100, Received: 1000}, {Name: "b:1"},
	}
	require.Equal(t, [][]string{
		{"a:1", "3", "2", "1,200", "1,100", "100", "1", "1,000"},
		{"b:1", "0", "0", "0", "0", "0", "0", "0"},
	}, hostTable(run).Rows)
	for i := range 100 {
		run.Result.BrokerHosts = append(run.Result.BrokerHosts, result.BrokerHost{Name: fmt.Sprint("c:", i)})
	}
	require.Len(t, hostTable(run).Rows, maxListed)
	require.Contains(t, hostTable(run).Note, "The first 50 of 102.")
}

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

// TestConnectionLimit: ActiveMQ Classic takes a thousand connections on a port (maximumConnections), and no more. Those
// beyond are counted as not opened, the others are held.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	const most, count = 1000, 1015
	b := brokertest.StartActiveMQ(t)
	for protocol, url := range map[string]string{"amqp": b.AMQPURL(), "stomp": b.STOMPURL()} {
		t.Run(protocol, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "result")
			r := run(t, limit, protocol, "connections", "--url", url, "--count", fmt.Sprint(count), "--max-pending", "8",
				"--connect-timeout", "30s", "--hold", "2s", "--silent", "--threshold", "connections.live >= 998", "--result", dir)
			require.Equal(t, statusFailed, r.status, r.stderr)
			got := musttest.Get(runresult.Read(dir))(t)
			c := got.Total.Connections
			require.LessOrEqual(t, c.Opened, uint64(most))
			require.GreaterOrEqual(t, c.Opened, uint64(most-2), "the connection of before the load may have a place still")
			require.EqualValues(t, count, c.Opened+c.Refused+c.TimedOut)
			require.Equal(t, c.Opened, c.Closed)
			require.Zero(t, c.Lost)
			require.EqualValues(t, c.Opened, *got.Figures.MaximumLive)
			require.True(t, got.Thresholds[0].Kept, got.Thresholds[0].String())
		})
	}
}

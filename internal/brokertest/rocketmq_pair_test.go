//go:build unix && failures

package brokertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRocketMQPair: the slave is connected to its master, also when the master was killed and is back.
func TestRocketMQPair(t *testing.T) {
	master, slave, err := LaunchRocketMQPair(t.Context(), WithRocketMQHeap("256m"), WithRocketMQProperty("brokerRole", "SYNC_MASTER"))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, slave.Close())
		require.NoError(t, master.Close())
	})
	require.NoError(t, master.CreateTopic(t.Context(), "copied", 2))
	require.Eventually(t, func() bool {
		_, err := slave.TopicMessages(t.Context(), "copied")
		return err == nil
	}, time.Minute, 100*time.Millisecond, "the slave learns the topics of its master")
	master.Kill()
	require.True(t, slave.Alive())
	require.NoError(t, master.Start(t.Context()))
	require.Eventually(t, func() bool {
		n, err := master.Replicas(t.Context())
		return err == nil && n == 1
	}, time.Minute, 100*time.Millisecond)
	slave.Kill()
	require.Eventually(t, func() bool {
		n, err := master.Replicas(t.Context())
		return err == nil && n == 0
	}, time.Minute, 100*time.Millisecond)
}

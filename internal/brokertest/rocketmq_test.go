//go:build unix

package brokertest_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

func TestRocketMQStartsDiesAndComesBack(t *testing.T) {
	r := brokertest.StartRocketMQ(t)
	for _, address := range []string{r.NameServer(), r.Broker()} {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	require.True(t, r.Alive())
	require.NoError(t, r.Pause())
	require.NoError(t, r.Resume())
	r.Kill()
	require.False(t, r.Alive())
	_, err := net.Dial("tcp", r.Broker())
	require.Error(t, err)
	conn, err := net.Dial("tcp", r.NameServer())
	require.NoError(t, err, "the name server stays")
	require.NoError(t, conn.Close())

	require.NoError(t, r.Start(testContext(t)))
	require.True(t, r.Alive())
	require.NoError(t, r.Close())
	require.NoDirExists(t, r.Dir())
	require.NoError(t, r.Close())
}

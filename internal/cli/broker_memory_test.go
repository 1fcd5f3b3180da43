package cli

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/drivers"
)

// TestBrokerMemory: the limit of the broker's total memory stops a client that fills forty queues below their own
// limits. Consumers then receive every accepted message, and all memory is free again.
func TestBrokerMemory(t *testing.T) {
	for _, protocol := range broker.Protocols() {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			b, err := broker.Start(broker.Config{Listen: map[string]string{protocol: "127.0.0.1:0"}, Limits: store.Config{Memory: 32 << 20}})
			require.NoError(t, err)
			defer b.Close()
			run := func(role string, args ...string) ended {
				var stdout, stderr output
				status := Main(Env{
					Args: append([]string{
						protocol, role, "--url", protocol + "://" + b.Addr(protocol), "--num-destinations", "40", "--connect-timeout", "60s", "queue://Q",
					}, args...),
					Stdout: &stdout, Stderr: &stderr, Factories: drivers.All(),
				})
				return ended{status, stdout.String(), stderr.String()}
			}
			sent := run("producer", "--message-size", "64KiB", "--max-pending", "20", "--message-count", "4000", "--duration", "10", "--drain-timeout", "2s")
			assert.Equal(t, exitFailed, sent.status, "4000 messages are 250 MiB")
			used, limit := b.Store().Memory()
			assert.Greater(t, used, limit/2)
			assert.Less(t, used, limit+limit/4+1<<20)
			stored := func() (n uint64) {
				for _, d := range b.Stats().Destinations {
					n += d.Sent
				}
				return n
			}
			require.Eventually(t, func() bool { return b.Stats().Connections[0].Open == 0 }, time.Minute, 10*time.Millisecond,
				"connections of a client that has gone hold memory, and messages that are not stored yet, until that is noticed")
			n := stored()
			if r := b.Stats().RocketMQ; r != nil { // a topic without a group drops its oldest messages when it is full
				n -= r.Dropped
			}
			assert.Greater(t, n, uint64(200))

			got := run("consumer", "--message-count", strconv.FormatUint(n, 10), "--duration", "60")
			assert.Equal(t, exitOK, got.status, got.stderr)
			used, _ = b.Store().Memory()
			if protocol != broker.RocketMQ { // it keeps an eighth of the consumed messages, for later groups
				assert.Less(t, used, limit/10)
				for _, d := range b.Stats().Destinations {
					for _, q := range d.Queues {
						assert.Zero(t, q.Depth, d.Address)
					}
				}
			}
			require.Eventually(t, func() bool { return b.Stats().Connections[0].Open == 0 }, time.Minute, 10*time.Millisecond)
			again := run("client", "--message-count", "400", "--max-pending", "5")
			assert.Equal(t, exitOK, again.status, again.stderr)
		})
	}
}

//go:build unix

package crossing

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// TestRunsInARow: some runs in a row of each kind leave no goroutine, connection, subscription or temporary queue behind.
func TestRunsInARow(t *testing.T) {
	a := shared.Artemis(t)
	at := urls{"amqp": a.AMQPURL(), "stomp": a.STOMPURL()}
	for _, protocol := range []string{"amqp", "stomp"} {
		t.Run(protocol, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			topics := map[string]bool{}
			for i := range 4 {
				prefix := "ten." + protocol + "."
				for kind, args := range map[string][]string{
					"queue":   {"queue://" + prefix + "queue"},
					"topic":   {"topic://" + prefix + "topic"},
					"durable": {"--durable", "--clientID", "id" + strconv.Itoa(i), "topic://" + prefix + "durable"},
					"shared":  {"--shared", "2", "--consumers", "2", "topic://" + prefix + "shared"},
				} {
					topics[prefix+kind] = kind != "queue"
					perfmq(t, append([]string{
						protocol, "client", "--url", at[protocol], "--message-count", "50", "--max-pending", "10", "--producers", "2",
					}, args...)...)
				}
			}
			ctx := soon(t)
			err := goleak.Find(before)
			for err != nil && ctx.Err() == nil {
				err = goleak.Find(before)
			}
			require.NoError(t, err)
			require.EventuallyWithT(t, func(t *assert.CollectT) { // the broker is a moment behind
				requireNothingLeft(ctx, t, a, topics)
			}, patience, 50*time.Millisecond)
		})
	}
}

// requireNothingLeft asks the broker. topics tells which of the addresses named "ten." may have no queue.
func requireNothingLeft(ctx context.Context, t require.TestingT, a *brokertest.Artemis, topics map[string]bool) {
	left, err := a.Connections(ctx)
	require.NoError(t, err)
	require.Empty(t, left, "connections are left at the broker")
	workers, err := a.Workers(ctx)
	require.NoError(t, err)
	require.Zero(t, workers)
	for name, topic := range topics {
		if subs, err := a.Subscriptions(ctx, name); topic {
			require.NoError(t, err)
			require.Empty(t, subs, "subscriptions of %s", name)
		}
	}
	queues, err := a.Queues(ctx, "")
	require.NoError(t, err)
	for _, q := range queues {
		require.Falsef(t, q.Temporary, "%+v", q)
		require.Falsef(t, strings.HasPrefix(q.Address, "ten.") && topics[q.Address], "left behind: %+v", q)
		require.Truef(t, !strings.HasPrefix(q.Address, "ten.") || q.Name == q.Address, "left behind: %+v", q)
	}
}

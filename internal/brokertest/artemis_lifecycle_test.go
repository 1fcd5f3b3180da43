//go:build unix

package brokertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
)

// TestCrashPauseAndRestart goes through the life of one broker, in the order
// that costs the fewest starts.
func TestCrashPauseAndRestart(t *testing.T) {
	a := brokertest.StartArtemis(t)
	t.Run("counters", func(t *testing.T) { testCounters(t, a) })
	ctx := testContext(t)
	sender := newSender(t, dial(t, a.AMQPURL(), "", nil), "kept")
	require.NoError(t, sender.Send(ctx, durable("one"), nil))

	require.NoError(t, a.Pause())
	short, cancel := context.WithTimeout(ctx, 3*time.Second) // in which it leaves
	defer cancel()
	require.ErrorIs(t, sender.Send(short, durable("two"), nil), context.DeadlineExceeded, "a paused broker answers nothing")
	assert.True(t, a.Alive())
	require.NoError(t, a.Resume())
	_, err := a.WaitQueue(ctx, "kept", func(q brokertest.QueueStats) bool { return q.MessageCount == 2 })
	require.NoError(t, err, "it goes on where it was")

	require.ErrorContains(t, a.Start(ctx), "running")
	before := a.AMQPURL()
	require.NoError(t, a.Pause())
	a.Kill() // also of a paused one
	a.Kill()
	require.False(t, a.Alive())
	require.Error(t, a.Pause())
	require.NoError(t, a.Stop(), "it is stopped")
	_, err = a.Queue(ctx, "kept")
	require.Error(t, err)

	require.NoError(t, a.Start(ctx))
	require.Equal(t, before, a.AMQPURL())
	q := musttest.Get(a.Queue(ctx, "kept"))(t)
	assert.EqualValues(t, 2, q.MessageCount, "durable messages survive a crash")

	require.NoError(t, a.Stop())
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.NoDirExists(t, a.Dir())
}

package rocketmq

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestPullsCommitNothing: a broker takes the offset that a pull commits at an unknown time.
func TestPullsCommitNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newThreads(t)
		c := b.consumer(&Options{PullBatch: 32})
		q := b.own(c, 2, 7)
		q.next = 9
		require.NoError(t, c.pull(q, 0))
		synctest.Wait()
		require.Len(t, b.held, 1)
		for field, want := range map[string]int64{"commitOffset": 0, "sysFlag": 2, "queueOffset": 9, "queueId": 2} {
			n, ok := b.held[0].Number(field)
			require.True(t, ok, field)
			require.Equal(t, want, n, field)
		}
	})
}

package store

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhoHasGoneIsForgotten: waiters for room that do not ask again are forgotten.
func TestWhoHasGoneIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, q := queue(New(Config{Limit: 1}), "Q")
		sendNumbers(t, d, 1, 1)
		var asked atomic.Int64
		var stays func()
		stays = func() { asked.Add(1); d.Room(stays) }
		stays()
		for range 20 {
			for range maxWaiters {
				require.False(t, d.Room(func() {}))
			}
			time.Sleep(time.Second) //nolint:forbidigo // a fake clock
			synctest.Wait()
		}
		q.room.mu.Lock()
		assert.LessOrEqual(t, len(q.room.list), 2*maxWaiters)
		q.room.mu.Unlock()
		before := asked.Load()
		assert.LessOrEqual(t, before, int64(21), "once a second at most")
		assert.Equal(t, 1, q.purge())
		synctest.Wait()
		assert.Equal(t, before+1, asked.Load(), "who is there is told")
	})
}

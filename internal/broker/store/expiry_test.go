package store

import (
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func mortal(body string, life time.Duration) *Message {
	m := message(body)
	m.Expires = time.Now().Add(life).UnixMilli()
	return m
}

// TestExpiredMakeRoom: a full queue without consumers takes messages again when some in it have expired, wherever they
// are.
func TestExpiredMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, q := queue(New(Config{Limit: 8}), "Q")
		start := time.Now()
		var told atomic.Int64
		notify := func() { told.Store(int64(time.Since(start))) }
		later := func(after time.Duration) { time.Sleep(time.Until(start.Add(after))); synctest.Wait() } //nolint:forbidigo // a fake clock

		d.Send(mortal("back", 10*time.Second))
		c := consume(t, q, nil)
		_, list := take(c, 1)
		require.Len(t, list, 1)
		sendNumbers(t, d, 1, 2)
		d.Send(mortal("middle", 20*time.Second))
		sendNumbers(t, d, 3, 4)
		urgent := mortal("urgent", 10*time.Second)
		urgent.Priority = 9
		d.Send(urgent)
		sendNumbers(t, d, 5, 5)
		require.False(t, d.Room(notify), "it is full")
		assert.True(t, c.Release(list[0].ID, true))

		later(9 * time.Second)
		assert.Zero(t, told.Load(), "nothing has expired")
		later(11 * time.Second)
		assert.Equal(t, int64(10*time.Second), told.Load())
		assert.Equal(t, uint64(2), q.Stats().Expired)
		sendNumbers(t, d, 6, 7)
		require.False(t, d.Room(notify))
		later(21 * time.Second)
		assert.Equal(t, int64(20*time.Second), told.Load())
		sendNumbers(t, d, 8, 8)
		require.False(t, d.Room(nil))
		assert.Equal(t, QueueCounts{
			Consumers: 1, Depth: 8, Bytes: 8 * 257, Stored: 11, Delivered: 1, Returned: 1, Expired: 3,
		}, q.Stats().QueueCounts)
		got, _ := take(c, 10)
		assert.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7", "8"}, got)
	})
}

// TestExpiredMakeRoomWhereTheBrokerRejects: a sender that is refused today is not tomorrow.
func TestExpiredMakeRoomWhereTheBrokerRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, q := queue(New(Config{Limit: 4, Full: Reject}), "Q")
		for i := range 4 {
			require.Equal(t, Stored, d.Send(mortal(strconv.Itoa(i), time.Second)))
		}
		require.Equal(t, Full, d.Send(message("x")))
		time.Sleep(time.Second) //nolint:forbidigo // a fake clock
		require.Equal(t, Stored, d.Send(message("x")))
		assert.Equal(t, QueueCounts{Depth: 1, Bytes: 257, Stored: 5, Expired: 4}, q.Stats().QueueCounts)
	})
}

// TestExpiryDuringAStall: nothing happens in it, and what was due happens after it.
func TestExpiryDuringAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Limit: 1})
		d, q := queue(s, "Q")
		start := time.Now()
		d.Send(mortal("x", time.Second))
		room := make(chan time.Duration, 9)
		var ask func()
		ask = func() {
			if d.Room(ask) {
				room <- time.Since(start)
			}
		}
		ask()
		s.Stall(5 * time.Second)
		time.Sleep(4 * time.Second) //nolint:forbidigo // a fake clock
		assert.Zero(t, q.Stats().Expired)
		assert.Equal(t, 5*time.Second, <-room)
	})
}

// TestWhoHasGoneIsForgotten: those who waited for room and are not there any more do not stay for ever.
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

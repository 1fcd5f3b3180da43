package rocketmq

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// came returns the number of requests so far, once nothing moves.
func (b *threads) came() int {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held)
}

// TestMore: messages announced to be followed by more wait for more, for Flush, or for Close, on any connection.
func TestMore(t *testing.T) {
	for mode, lingers := range map[string]bool{sendAsync: false, sendOneWay: false, sendBatch: true} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, other := newThreads(t), newThreads(t)
				opts := defaultOptions()
				opts.Send, opts.BatchSize, opts.BatchLinger = mode, 1, 0
				p, _ := sendingTo(opts, b.conn, other.conn)
				slot := uint32(0)
				send := func(more bool) {
					slot++
					require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: driver.NewSlot(slot, 1), Time: 1, More: more}))
				}
				send(true)
				require.Zero(t, b.came())
				send(true) // over the other connection
				require.Equal(t, 1, b.came())
				require.Zero(t, other.came())
				send(false)
				require.Equal(t, 2, b.came())
				require.Equal(t, 1, other.came(), "the first one's message went over another connection")
				send(true)
				require.Equal(t, 1, other.came())
				for range 2 {
					require.NoError(t, p.Flush(t.Context()))
					require.Equal(t, 2, other.came())
				}
				if !lingers {
					return
				}
				p.batch.size = 3
				send(true)
				send(true)
				require.Equal(t, 2, b.came())
				send(false) // without a time to linger, a batch ends when no more follows
				require.Equal(t, 3, b.came())
			})
		})
	}
}

// TestSynchronousSendsDoNotWaitForMore, for which their Send would wait, too.
func TestSynchronousSendsDoNotWaitForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newThreads(t)
		opts := defaultOptions()
		opts.Send = sendSync
		p, o := sendingTo(opts, b.conn)
		go b.workOn(1)
		require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: driver.NewSlot(3, 7), Time: 1, More: true}))
		require.Equal(t, 1, o.count(driver.Accepted, driver.ClassNone))
		require.Equal(t, 1, o.seen[driver.NewSlot(3, 7)])
		require.Positive(t, p.Waits().Answer.Times)
	})
}

// workOn handles requests until so many have come.
func (b *threads) workOn(n int) {
	for done := 0; done < n; {
		<-time.After(time.Millisecond) // the bubble's clock
		b.mu.Lock()
		held := b.held
		b.held = nil
		b.mu.Unlock()
		for _, r := range held {
			b.handle(r)
			done++
		}
	}
}

// TestOneWay: sends without an answer end when they are written, and unwritten ones when the connection ends.
func TestOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newThreads(t)
		opts := defaultOptions()
		opts.Send = sendOneWay
		p, o := sendingTo(opts, b.conn)
		for i := range uint32(10) {
			require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: driver.NewSlot(i, 5), Time: 1, More: i < 9}))
			if i == 8 {
				synctest.Wait()
				require.Zero(t, o.total())
			}
		}
		require.Equal(t, 10, b.came())
		require.Equal(t, 10, o.count(driver.Accepted, driver.ClassNone))
		for i := range uint32(3) {
			require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: driver.NewSlot(i, 6), Time: 1, More: true}))
		}
		require.NoError(t, b.net.Close())
		synctest.Wait()
		require.Equal(t, 3, o.count(driver.Unknown, driver.ClassConnectionLost))
		require.Equal(t, 13, o.total())
		require.Equal(t, 1, o.seen[driver.NewSlot(2, 6)], "slots come back whole")
		require.Zero(t, p.inFlight.Load())
		err := p.Send(t.Context(), &driver.Message{Slot: driver.NewSlot(0, 7), Time: 1})
		require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err))
	})
}

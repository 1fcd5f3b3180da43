package rocketmq

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// batching returns a producer of batches of four in a bubble of synctest, and the broker that they are sent to.
func batching(t *testing.T) (*producer, *threads) {
	b := newThreads(t)
	opts := defaultOptions()
	opts.Send, opts.BatchSize = sendBatch, 4
	p, _ := sendingTo(opts, b.conn)
	return p, b
}

// born returns when the first messages of the batches that have come were sent, in milliseconds.
func (b *threads) born(t *testing.T) (list []int64) {
	synctest.Wait()
	for _, r := range b.held {
		list = append(list, mustNumber(t, r, "g"))
	}
	return list
}

// TestBatchesKeepTheirOrder when the timer and Send come with a batch each, and end when the context of Send, or of the
// closing, ends while the timer waits for room.
func TestBatchesKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, b := batching(t)
		ends := p.done.(*outcomes)
		send := func(ctx context.Context, n int) {
			require.NoError(t, p.batch.add(ctx, &driver.Message{Slot: driver.Slot(n), Time: int64(n) * 1000}))
		}
		send(t.Context(), 1)
		p.batch.turn <- struct{}{} // the timer comes no further than this
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for n := 2; n <= 5; n++ {
				send(t.Context(), n)
			}
		}()
		<-time.After(2 * p.opts.BatchLinger) // the bubble's clock
		require.Empty(t, b.born(t))
		p.batch.turn.give()
		<-sent
		<-time.After(p.opts.BatchLinger)
		require.Equal(t, []int64{1, 5}, b.born(t))
		p.batch.turn <- struct{}{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for n := 6; n <= 9; n++ {
			send(ctx, n)
		}
		require.Equal(t, 4, ends.count(driver.Unknown, driver.ClassTimeout))
		send(t.Context(), 10)
		p.batch.stop(ctx)
		require.Equal(t, 5, ends.count(driver.Unknown, driver.ClassTimeout))
		require.Error(t, p.batch.life.Err())
		synctest.Wait() // the timer's waits have ended too: none takes the next batch
		p.batch.turn.give()
		send(t.Context(), 11)
		p.batch.stop(t.Context())
		p.flushHeld()
		require.Equal(t, []int64{1, 5, 11}, b.born(t))
	})
}

// TestBatchesOfAStalledBroker: a broker that does not read holds the producer up. The timer does not gather more and
// more bytes for it, until the connection counts as lost.
func TestBatchesOfAStalledBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, pause = 64, 100 * time.Millisecond // longer than it takes the timer to send a message alone
		opts := defaultOptions()
		opts.Send, opts.BatchSize = sendBatch, 4
		conn, theirs := piped()
		p, ends := sendingTo(opts, conn)
		p.kinds[0].body = make([]byte, 1<<20)
		sending := make(chan error, 1)
		var sent atomic.Int64
		go func() {
			for i := range n {
				<-time.After(pause)
				if err := p.Send(t.Context(), &driver.Message{Slot: driver.Slot(i), Time: int64(i+1) * 1000}); err != nil {
					sending <- err
					return
				}
				sent.Add(1)
			}
			sending <- nil
		}()
		<-time.After(n * pause)
		synctest.Wait()
		require.NoError(t, conn.Why(), "it has only stalled")
		require.Zero(t, ends.total())
		require.Less(t, sent.Load(), int64(n/2))
		b := &threads{t: t, conn: conn, net: theirs}
		go b.read()
		require.NoError(t, <-sending)
		<-time.After(pause)
		synctest.Wait()
		var next int64
		for _, r := range b.held {
			require.Equal(t, next+1, mustNumber(t, r, "g"))
			for body := r.Body; len(body) > 0; next++ {
				var ok bool
				_, body, ok = wire.CutBatched(body)
				require.True(t, ok)
			}
		}
		require.EqualValues(t, n, next, "all messages, in their order")
		_ = theirs.Close()
		conn.close()
	})
}

func mustNumber(t *testing.T, r *reply, key string) int64 {
	t.Helper()
	n, ok := r.Number(key)
	require.True(t, ok)
	return n
}

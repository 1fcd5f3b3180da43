package rocketmq

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
		n, ok := r.Number("g")
		require.True(t, ok)
		list = append(list, n)
	}
	return list
}

// TestBatchesKeepTheirOrder when the timer and Send come with a batch each, and Send is faster.
func TestBatchesKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, b := batching(t)
		send := func(n int) {
			require.NoError(t, p.batch.add(t.Context(), &driver.Message{Slot: driver.Slot(n), Time: int64(n) * 1000}))
		}
		send(1)
		// The timer has fired, but its goroutine comes no further than this.
		require.True(t, p.batch.detachIf(func(*batch) bool { return true }))
		for n := 2; n <= 5; n++ {
			send(n)
		}
		require.Equal(t, []int64{1, 2}, b.born(t))
		p.batch.sendReady(t.Context(), false) // as linger does
		require.Equal(t, []int64{1, 2}, b.born(t))

		send(6)
		<-time.After(p.opts.BatchLinger) // the bubble's clock
		require.Equal(t, []int64{1, 2, 6}, b.born(t))

		send(7)
		require.True(t, p.batch.detachIf(func(*batch) bool { return true })) // again, and then the producer closes
		p.batch.stop(t.Context())
		p.letGo()
		require.Equal(t, []int64{1, 2, 6, 7}, b.born(t))
	})
}

package verify

import (
	"sync"
	"testing"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// A stranger that pretends to be very many producers, or to be very far with its numbers, costs no more than a bound.
func TestStrangersAreBounded(t *testing.T) {
	t.Parallel()
	tracker := NewTracker()
	c := NewChecker(tracker, 0)
	send := func(producer, number int64) Verdict {
		id := driver.ID{Run: 1, Producer: producer, Number: number}
		id.Sum = Sum(id, BodySum(nil))
		return c.Check(&driver.Delivery{ID: id}, 1)
	}
	for producer := range int64(maxStreams) {
		require.Equal(t, Own, send(producer, 0))
	}
	for producer := range int64(10) {
		require.Equal(t, Foreign, send(maxStreams+producer, 0))
	}
	require.Equal(t, Own, send(5, 1))
	require.Equal(t, Illegible, send(5, maxNumbers))
	require.Equal(t, Own, send(5, maxNumbers-1))
	require.Equal(t, result.Progress{Received: maxStreams + 2, Foreign: 10, Damaged: 1}, tracker.Progress(0))
}

// Consumers, snapshots and the drain work on a tracker at the same time: for the race detector.
func TestTrackerUnderRace(t *testing.T) {
	t.Parallel()
	const consumers, count = 4, 20_000
	tracker := NewTracker()
	ledger := NewLedger(1, 0, driver.Destination{Name: "Q"}, 0)
	ids := make(chan driver.ID, 100)
	var wg sync.WaitGroup
	for range consumers {
		c := NewChecker(tracker, 1)
		wg.Go(func() {
			for id := range ids {
				c.Check(&driver.Delivery{ID: id}, id.Number)
			}
		})
	}
	for i := range count {
		id := ledger.Next(0)
		ids <- id
		if i%7 == 0 {
			ledger.Done(id.Number, driver.Outcome{State: driver.Unknown})
		}
		if i%1000 == 0 {
			tracker.Open([]*Ledger{ledger}, nil)
			tracker.Progress(1)
		}
	}
	close(ids)
	wg.Wait()
	require.Zero(t, tracker.Open([]*Ledger{ledger}, nil))
	require.EqualValues(t, count, tracker.Progress(1).Received)
	require.Positive(t, tracker.Last())
	received := tracker.Seal()
	received.SetName(driver.Destination{}, "")
	NewChecker(tracker, 1).Check(&driver.Delivery{ID: ledger.Next(0)}, 1)
	tracker.Seal()
	require.EqualValues(t, count, received.Streams[0].arrived.GetCardinality(), "what comes after the end is ignored")
	sent := ledger.Seal([]int64{count})
	ledger.Done(3, driver.Outcome{State: driver.Rejected})
	require.True(t, sent.refused.IsEmpty())
	require.True(t, sent.unconfirmed.Contains(count), "in flight at the end")
}

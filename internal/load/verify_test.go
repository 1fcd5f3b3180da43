package load_test

import (
	"context"
	"testing"
	"time"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Messages are numbered without gaps, in the order in which they leave; one that did not leave gives its number to the
// next. Messages in flight at the end are unconfirmed.
func TestNumbering(t *testing.T) {
	body := []byte("body")
	ledger := verify.NewLedger(42, 3, driver.Destination{Name: "Q"}, verify.BodySum(body))
	r := newRig(setup{MaxPending: 10, Count: 10, Ledger: ledger})
	var numbers []int64
	refuse := true
	r.Attach(sender(func(_ context.Context, m *driver.Message) error {
		if refuse && len(numbers) == 4 {
			return driver.Errorf(driver.ClassConnectionLost, "send", "", "gone")
		}
		n := m.ID.Number
		numbers = append(numbers, n)
		want := driver.ID{Run: 42, Producer: 3, Number: n}
		want.Sum = verify.Sum(want, verify.BodySum(body))
		require.Equal(t, want, m.ID)
		switch n % 3 {
		case 0:
			r.Done(m.Slot, driver.Outcome{})
		case 1:
			r.Done(m.Slot, driver.Outcome{State: driver.Rejected, Class: driver.ClassFull})
		} // the rest stays in flight
		return nil
	}))
	require.Error(t, r.Run(t.Context()))
	refuse = false
	runFor(t, r, 100*time.Millisecond) // ends as no slot is free any more
	want := make([]int64, len(numbers))
	for i := range want {
		want[i] = int64(i)
	}
	require.Equal(t, want, numbers)

	sent := r.Seal()
	require.EqualValues(t, len(numbers), sent.Count)
	tracker := verify.NewTracker()
	received := tracker.Seal()
	received.SetName(driver.Destination{Name: "Q"}, "")
	received.Drained = true
	got := verify.Judge(&verify.Side{ID: 42, Sent: []*verify.Sent{sent}, Received: []*verify.Received{received}}).Total
	accepted, inFlight := uint64(len(numbers)+2)/3, uint64(len(numbers))/3
	require.Equal(t, result.Verified{Expected: accepted, Lost: accepted, UnconfirmedMissing: inFlight}, got)
}

func TestWithheldIsCounted(t *testing.T) {
	rec := stats.NewProducerRecorder(false, nil)
	for i := range 10 {
		rec.Begun(stats.Measure)
		rec.Done(stats.End{Due: stats.Measure}, driver.Outcome{Withheld: i%5 == 0}, 0)
	}
	rec.Begun(stats.Measure)
	rec.Done(stats.End{Due: stats.Measure}, driver.Outcome{State: driver.Unknown}, 0)
	require.EqualValues(t, 2, rec.Withheld())
	require.EqualValues(t, 10, rec.Completed())
	require.EqualValues(t, 11, rec.Ended())
}

// The checker decides which messages are foreign; the time alone does not.
func TestForeignByID(t *testing.T) {
	mine := driver.ID{Run: 1, Number: 0}
	mine.Sum = verify.Sum(mine, verify.BodySum(nil))
	others := driver.ID{Run: 2, Number: 0}
	others.Sum = verify.Sum(others, verify.BodySum(nil))
	broken := mine
	broken.Number++
	rec, clock := stats.NewConsumerRecorder(), load.NewClock()
	now := time.Now().UnixMicro()
	c := load.NewConsumer(load.ConsumerConfig{Phases: new(load.Phases), OwnOnly: true, Checker: verify.NewChecker(verify.NewTracker(), 1)}, clock, rec,
		receiver(func(_ context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
			for _, d := range []driver.Delivery{
				{ID: mine}, // received, unstamped
				{ID: mine, Time: now, HasTime: true},
				{ID: others, Time: now + 1000, HasTime: true},             // foreign
				{Time: now + 1000, HasTime: true},                         // foreign
				{ID: broken, Time: now + 1000, HasTime: true},             // received, damaged
				{ID: broken},                                              // foreign, for all that is known
				{ID: driver.GarbledID(), Time: now + 1000, HasTime: true}, // received, damaged
			} {
				deliver(&d)
			}
			return nil
		}))
	require.NoError(t, c.Run(t.Context()))
	n := stats.NewCollector(nil, []*stats.ConsumerRecorder{rec}, clock.Start()).Collect(stats.Measure, time.Now(), true).Total.Values()
	require.EqualValues(t, 4, n[result.Received])
	require.EqualValues(t, 1, n[result.Unstamped])
	require.EqualValues(t, 3, n[result.Foreign])
}

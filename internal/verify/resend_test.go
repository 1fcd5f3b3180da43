package verify

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestResent: of messages that were sent again, some arrived more than once. No more of their copies than that are
// explained, in one process and in two, and after their files were read.
func TestResent(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		const messages = 200
		dest := driver.Destination{Name: "A"}
		ledger := NewLedger(1, 0, dest, BodySum(nil))
		trackers := []*Tracker{NewTracker(), NewTracker()}
		var outage inOutage
		var checkers []*Checker
		for _, tracker := range trackers {
			c := NewChecker(tracker, 1)
			tracker.Reconnecting(&outage)
			checkers = append(checkers, c)
		}
		var ids []driver.ID
		for range messages {
			ids = append(ids, ledger.Next(0))
		}
		outage.receiving = true
		var twice, after, unexplained uint64
		for n, id := range ids {
			resends, copies, outaged := uint64(random.IntN(4)), uint64(random.IntN(5)), uint64(0)
			for range resends {
				require.Equal(t, id, ledger.Again(int64(n), 0))
			}
			ledger.Again(int64(n), 0)
			ledger.NotAgain(int64(n))
			at := checkers[random.IntN(2)] // all copies that an outage explains go to one process: see Judge
			for i := range copies + 1 {
				outage.now = i > 0 && random.IntN(3) == 0
				if outage.now {
					outaged++
				}
				at.Check(&driver.Delivery{ID: id}, 1)
			}
			outage.now = false
			if random.IntN(4) == 0 { // and one copy in either process
				copies++
				checkers[random.IntN(2)].Check(&driver.Delivery{ID: id}, 1)
			}
			explained := min(copies, resends)
			twice += explained
			after += min(outaged, copies-explained)
			unexplained += copies - explained - min(outaged, copies-explained)
		}
		sides := []*Side{{ID: 1, Sent: []*Sent{ledger.Seal(nil)}}}
		for _, tracker := range trackers {
			r := tracker.Seal()
			r.SetName(dest, "")
			r.Drained = true
			sides = append(sides, &Side{ID: 2, Received: []*Received{r}})
		}
		for range 2 {
			total := Judge(sides...).Total
			require.EqualValues(t, messages, total.Received)
			require.Zero(t, total.Lost)
			require.Equal(t, twice, total.Resent)
			require.Equal(t, after, total.AfterOutage)
			require.Equal(t, unexplained, total.Duplicates-total.Resent-total.AfterOutage)
			for i, side := range sides {
				file, err := Encode(side)
				require.NoError(t, err)
				sides[i], err = Decode(file)
				require.NoError(t, err)
			}
		}
	}
}

// TestProgressOfResent: copies of messages that were sent again are known during the run.
func TestProgressOfResent(t *testing.T) {
	t.Parallel()
	ledger, tracker := NewLedger(1, 0, driver.Destination{Name: "A"}, BodySum(nil)), NewTracker()
	c := NewChecker(tracker, 1)
	for n := range int64(100) {
		id := ledger.Next(0)
		c.Check(&driver.Delivery{ID: id}, 1)
		if n%10 == 0 {
			ledger.Again(n, 0)
			c.Check(&driver.Delivery{ID: id}, 1)
		}
		if n%20 == 0 || n%25 == 1 {
			c.Check(&driver.Delivery{ID: id}, 1)
		}
	}
	p := tracker.Progress(1, ledger)
	require.EqualValues(t, 10+5+4, p.Duplicates)
	require.EqualValues(t, 10, p.Resent)
	require.EqualValues(t, 19, tracker.Progress(1).Duplicates)
}

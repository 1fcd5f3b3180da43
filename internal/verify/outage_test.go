package verify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// inOutage explains each message while it is set.
type inOutage struct{ now bool }

func (o *inOutage) Explain(bool) bool { return o.now }

// TestAfterOutageInAnyOrder: a consumer got messages before the outage, another one got some again after it. The result is the same
// whichever of them hands over what it got first.
func TestAfterOutageInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, first := range []int{0, 1} {
		tracker := NewTracker()
		var outage inOutage
		before, after := NewChecker(tracker, 1), NewChecker(tracker, 1)
		before.Reconnecting(&outage)
		after.Reconnecting(&outage)
		check := func(c *Checker, from, to int64) {
			for n := from; n < to; n++ {
				id := driver.ID{Run: 1, Number: n}
				id.Sum = Sum(id, BodySum(nil))
				require.Equal(t, Own, c.Check(&driver.Delivery{ID: id}, 1))
			}
		}
		check(before, 0, 100)
		outage.now = true
		check(after, 60, 110) // 40 again, 10 new
		outage.now = false
		check(after, 90, 95) // the outage may explain one copy of each
		check(after, 20, 25) // it explains none of these
		tracker.mu.Lock()
		if first == 1 {
			tracker.checkers[0], tracker.checkers[1] = tracker.checkers[1], tracker.checkers[0]
		}
		tracker.mu.Unlock()
		s := tracker.Seal().streams[0]
		require.EqualValues(t, 110, s.arrived.Len())
		require.EqualValues(t, 50, s.duplicates)
		require.EqualValues(t, 40, s.afterOutage)
	}
}

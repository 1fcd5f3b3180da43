//go:build unix

package e2e

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRates(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	for _, c := range []struct {
		rate      float64
		producers int
	}{{1, 1}, {1.5, 1}, {0.3, 1}, {10, 7}, {33.3, 4}} {
		rate := strconv.FormatFloat(c.rate, 'f', -1, 64)
		t.Run(rate, func(t *testing.T) {
			t.Parallel()
			requireRate(t, c.rate, 2, func() result {
				queue := newQueue(t, a)
				r := run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--duration", "2", "--max-pending", "100", "--rate", rate,
					"--producers", strconv.Itoa(c.producers), "queue://"+queue)
				require.Equal(t, statusOK, r.status)
				require.EqualValues(t, r.summary.TotalSent, settled(t, a, queue).MessagesAcked)
				return r
			})
		})
	}
}

// requireRate: message n is due n/rate after the start. Exactly the messages that are due before the load has lasted
// seconds are sent. A machine that stalls at the end of the load omits the messages due in that moment: then another
// run may show it.
func requireRate(t *testing.T, rate, seconds float64, run func() result) {
	t.Helper()
	due := math.Ceil(rate * seconds)
	least := due - 1 - rate/10
	for tries := 1; ; tries++ {
		r := run()
		sent := float64(r.summary.TotalSent)
		require.LessOrEqual(t, sent, due, "messages due in %g s", seconds)
		if sent >= least {
			return
		}
		require.Less(t, tries, 5, "%g messages of %g that were due in %g s", sent, due, seconds)
	}
}

// TestRateThatCannotBe asks for more than any broker here takes: the load that did take place is counted truly, and the
// delay says that it was not the one asked for.
func TestRateThatCannotBe(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	queue := newQueue(t, a)
	r := run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--duration", "2", "--rate", "1000000", "--max-pending", "10", "queue://"+queue)
	require.Equal(t, statusOK, r.status)
	require.EqualValues(t, r.summary.TotalCompleted, settled(t, a, queue).MessagesAdded)
	require.Less(t, r.summary.TotalSent, uint64(1_000_000))
	require.Greater(t, r.summary.TotalDelaySend.P99, int64(500_000), "sends were late by as much as the load fell behind")
	require.GreaterOrEqual(t, r.summary.TotalResponse.Max, r.summary.TotalDelaySend.P99)
}

// first returns a function that returns r at its first call, and the result of again at later calls.
func first(r result, again func() result) func() result {
	called := false
	return func() result {
		if called {
			return again()
		}
		called = true
		return r
	}
}

//go:build unix

package e2e

import (
	"math"
	"strconv"
	"strings"
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
			queue := newQueue(t, a)
			r := run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--duration", "2", "--max-pending", "100", "--rate", rate,
				"--producers", strconv.Itoa(c.producers), "queue://"+queue)
			require.Equal(t, statusOK, r.status)
			require.EqualValues(t, r.summary.TotalSent, settled(t, a, queue).MessagesAcked)
			requireRate(t, c.rate, 2, &r)
		})
	}
}

// requireRate: message n is due n/rate after the start. Exactly the messages that are due before the load has lasted
// seconds are sent, or, by a busy machine, reported as unsent: internal/load has the tests by a fake clock.
func requireRate(t *testing.T, rate, seconds float64, r *result) {
	t.Helper()
	due := uint64(math.Ceil(rate * seconds))
	require.LessOrEqual(t, r.summary.TotalSent, due, "messages due in %g s", seconds)
	if strings.Contains(r.stdout, "--- warmup true\n") { // the average is without it
		return
	}
	average := r.summary.Details.Figures
	require.Equal(t, due, average.Due)
	require.Equal(t, due, r.summary.TotalSent+average.Unsent)
}

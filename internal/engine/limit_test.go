package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestLimitOfEachStep: each step has its own limit, at a broker that answers after 20 ms; the run has the limit that
// lasted longest.
func TestLimitOfEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Latency = 20 * time.Millisecond })
		s := newScenario(b.Factory(), false)
		step := func(name string, d time.Duration, rate string, work time.Duration) {
			s.step(name, lasting(d), s.senders("senders", paced(rate)), s.readers("readers", func(g *plan.Group) {
				g.ConsumerWork = load.Work{Mean: work}
			}))
		}
		step("paced", 3*time.Second, "100", 0)
		step("beyond", 5*time.Second, "5000", 0)
		step("again", 3*time.Second, "100", 0)
		step("slow", 4*time.Second, "100", 20*time.Millisecond)
		s.step("rest", lasting(10*time.Second), s.readers("readers", nil))
		s.step("others", lasting(3*time.Second), s.readers("others", func(g *plan.Group) {
			g.Destinations = []driver.Destination{{Kind: driver.Queue, Name: "of another program"}}
		}))
		sum := s.run(t, nil)
		want := []string{
			`^none: the rate was reached$`,
			`^max-pending \(producers waited for answers (9\d|100)% of the time; try a larger --max-pending\)$`,
			`^none: the rate was reached$`,
			`^the consumers \(their work took (99|100)% of their time; the backlog grew by (49|5\d) msg/s; try more --consumers\)$`,
			`^unknown \(consumers had received all, and waited 100% of the time\)$`, // nobody sends
			`^the producers \(consumers waited for messages 100% of the time\)$`,
		}
		for i := range want {
			require.Regexp(t, want[i], words.Limit(sum.Ended[i].Limit), sum.Ended[i].Name)
		}
		require.Regexp(t, `^max-pending \(step beyond: `, words.Limit(sum.Limit), "that which lasted longest")
		require.Equal(t, result.LimitMaxPending, sum.Limit.Kind)
	})
}

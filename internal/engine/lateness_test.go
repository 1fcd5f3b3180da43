package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// hasty lets a broker hold messages back for another time than it was asked to.
func hasty(f driver.Factory, by time.Duration) driver.Factory {
	return (&hooks{spec: func(s *driver.ProducerSpec) {
		if s.Delay > 0 {
			s.Delay += by
		}
	}}).factory(f)
}

func delayedBy(d time.Duration) func(*plan.Group) { return func(g *plan.Group) { g.Delay = d } }

// Lateness is the delivery beyond the delay, message by message; early messages are counted, and are in no lateness.
func TestLateness(t *testing.T) {
	for _, tt := range []struct {
		name           string
		by             time.Duration
		late, early    uint64
		lateness       int64 // microseconds, of each
		kept, notEarly bool
	}{
		{"in time", 0, 300, 0, 0, true, true},
		{"late", 70 * time.Millisecond, 300, 0, 70_000, false, true},
		{"early", -time.Millisecond, 0, 300, 0, false, false},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			s := newScenario(hasty(mem.New().Factory(), tt.by), true)
			s.plan.StallThreshold = time.Second
			s.plan.Thresholds = demands(t, "lateness.max < 50ms", "early == 0", "group.readers.lateness.p99 <= 70ms")
			s.step("load", func(step *plan.Step) { step.Duration, step.Drained = 4*time.Second, true },
				s.senders("senders", to("TEST", paced("100"), delayedBy(2*time.Second), func(g *plan.Group) { g.Count = 300 })), s.readers("readers", nil))
			sum := s.run(t, nil)
			require.True(t, sum.Outcome.Success, "%q", sum.Problems())
			require.EqualValues(t, 300, sum.Total.Get(result.Delayed))
			require.Equal(t, tt.early, sum.Total.Get(result.Early))
			require.EqualValues(t, 300, sum.Latencies[result.Transfer].Count)
			require.EqualValues(t, (2*time.Second + tt.by).Microseconds(), sum.Latencies[result.Transfer].Max, "transfer times include the delay")
			l := sum.Latencies[result.Lateness]
			if tt.late == 0 {
				require.Nil(t, l)
			} else {
				require.EqualValues(t, tt.late, l.Count)
				require.Equal(t, [2]int64{tt.lateness, tt.lateness * int64(tt.late)}, [2]int64{l.Max, l.Sum})
			}
			require.Equal(t, tt.kept, sum.Thresholds[0].Kept, sum.Thresholds[0].String())
			require.Equal(t, tt.notEarly, sum.Thresholds[1].Kept, sum.Thresholds[1].String())
			require.NotContains(t, strings.Join(sum.Warnings(), "\n"), "transfer times are of both")
			require.Empty(t, sum.Stalls, "nothing could come before the delay was over")
			require.Empty(t, sum.Notes(), "messages were held back because they were to")
		})
	}
}

// Each group, and each step, has its own delay: a message is judged by that with which it was sent, also if it comes
// when another one holds.
func TestLatenessOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(hasty(mem.New().Factory(), 5*time.Millisecond), true)
		senders := func(d time.Duration) *plan.Group { return s.senders("senders", to("TEST", sending(100), delayedBy(d))) }
		readers := func() *plan.Group { return s.readers("readers", nil) }
		s.step("long", nil, senders(20*time.Second), readers())
		s.step("short", lasting(5*time.Second), senders(time.Second), readers(), s.senders("others", to("TEST", paced("10"))))
		s.step("rest", drainedStep, readers())
		s.plan.DrainTimeout, s.plan.Allow.Disorder = time.Minute, true
		sum := s.run(t, nil)
		require.True(t, sum.Outcome.Success, "%q", sum.Problems())
		require.EqualValues(t, 250, sum.Total.Get(result.Received))
		require.EqualValues(t, 200, sum.Total.Get(result.Delayed))
		require.Zero(t, sum.Total.Get(result.Early))
		require.EqualValues(t, 200, sum.Latencies[result.Lateness].Count)
		require.Equal(t, [2]int64{5000, 200 * 5000}, [2]int64{sum.Latencies[result.Lateness].Max, sum.Latencies[result.Lateness].Sum})
		require.EqualValues(t, 100, sum.Ended[1].Latencies[result.Lateness].Count)
		require.EqualValues(t, 100, sum.Ended[2].Latencies[result.Lateness].Count)
		require.Contains(t, strings.Join(sum.Warnings(), "\n"), "transfer times are of both 200 delayed messages, with their delays, and 50 others")
		names := map[string]uint64{}
		for i := range sum.Workers {
			names[sum.Workers[i].Name] += sum.Workers[i].Get(result.Sent)
		}
		require.Equal(t, map[string]uint64{"senders-0": 100, "senders-0.2": 100, "others-0": 50, "readers-0": 0}, names)
	})
}

// A run of consumers alone knows the delays of messages that another run sends: they are neither old nor stalled, and
// the broker that holds them back is not the limit.
func TestLatenessOfAnotherRun(t *testing.T) {
	for _, verified := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := mem.New()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				s := newScenario(hasty(b.Factory(), 3*time.Millisecond), verified)
				s.step("load", lasting(8*time.Second), s.senders("senders", to("TEST", paced("100"), delayedBy(5*time.Second))))
				_ = s.run(t, nil)
			}()
			s := newScenario(b.Factory(), verified)
			s.plan.StallThreshold = time.Second
			s.step("load", lasting(15*time.Second), s.readers("readers", nil))
			sum := s.run(t, nil)
			<-sent
			require.EqualValues(t, 800, sum.Total.Get(result.Delayed))
			require.Equal(t, [3]int64{800, 3000, 800 * 3000}, [3]int64{sum.Latencies[result.Lateness].Count, sum.Latencies[result.Lateness].Max, sum.Latencies[result.Lateness].Sum})
			require.Equal(t, result.LimitProducers, sum.Limit.Kind, sum.Limit)
			require.Empty(t, sum.Stalls)
			require.Empty(t, sum.Notes())
		})
	}
}

// A run that ends before the first of its delayed messages comes has reached its rate, and no backlog that the broker
// would be blamed for.
func TestLimitOfDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(mem.New().Factory(), false)
		s.plan.DrainTimeout = time.Minute
		s.step("load", lasting(6*time.Second), s.senders("senders", to("TEST", paced("100"), delayedBy(5*time.Second))), s.readers("readers", nil))
		sum := s.run(t, nil)
		require.True(t, sum.Outcome.Success, "%q", sum.Problems())
		require.Equal(t, result.LimitNone, sum.Limit.Kind, sum.Limit)
	})
}

package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestFullSecondsOfRuns: intervals end at each whole second, at the end of the warm-up and at the end of the load; 700
// ms count as a full second.
func TestFullSecondsOfRuns(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		warmup, duration time.Duration
		want             int
	}{
		{0, 650 * ms, 0},
		{0, 750 * ms, 1},
		{0, 2500 * ms, 2},
		{0, 2750 * ms, 3},
		{0, 3 * time.Second, 3},
		{0, 4 * time.Second, 4},
		{time.Second, 4 * time.Second, 3},
		{time.Second, 3650 * ms, 2},
		{250 * ms, 3 * time.Second, 3},
		{350 * ms, 3 * time.Second, 2},
		{500 * ms, 3500 * ms, 2},
		{1100 * ms, 1900 * ms, 1},
		{1250 * ms, 2750 * ms, 2},
	} {
		inBubble(t, tt.warmup.String()+" of "+tt.duration.String(), func(t *testing.T) {
			s, _ := run(t, newPlan(mem.New().Factory(), func(p *flat) {
				p.Rate, p.Warmup, p.Duration = rate("100"), tt.warmup, tt.duration
			}), nil)
			want := tt.want
			require.Equal(t, want, s.Minimum.Completed.Seconds)
			require.Equal(t, want, s.Maximum.Completed.Seconds)
			if tt.warmup == 0 {
				want = max(0, want-1)
			}
			require.Equal(t, want, s.Minimum.Received.Seconds)
			_, known := s.Values["received.min"]
			require.Equal(t, want >= result.EnoughSeconds, known)
		})
	}
}

// TestExtremesOfReaders: a run that sends nothing has no lowest rate of sending.
func TestExtremesOfReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := run(t, newPlan(mem.New().Factory(), func(p *flat) { p.Role, p.Duration = plan.Consumer, 4*time.Second }), nil)
		require.Contains(t, s.Values, "received.max")
		require.NotContains(t, s.Values, "completed.max")
	})
}

// TestExtremesOfSteps: the lowest rate of a run or group is taken from its sending or receiving steps only, also by
// thresholds that abort.
func TestExtremesOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(mem.New().Factory(), false)
		s.plan.Thresholds = demands(t, "completed.min >= 90", "group.first.completed.min >= 90", "group.second.completed.max <= 60", "received.min >= 90", "group.readers.received.min >= 90")
		for i := range s.plan.Thresholds {
			s.plan.Thresholds[i].Abort = s.plan.Thresholds[i].CanAbort()
		}
		s.step("wait", lasting(4*time.Second), s.readers("readers", nil))
		s.step("fill", lasting(5*time.Second), s.senders("first", paced("100")))
		s.step("more", lasting(5*time.Second), s.senders("first", paced("100")), s.senders("second", paced("50")))
		s.step("read", lasting(6*time.Second), s.readers("readers", func(g *plan.Group) { g.ConsumerRate = plainRate("100") }))
		sum := s.run(t, nil)
		require.Len(t, sum.Ended, 4, sum.Outcome.Reason)
		for i := range sum.Thresholds {
			require.True(t, sum.Thresholds[i].Kept, sum.Thresholds[i].String())
		}
		for _, g := range sum.Groups {
			require.Equal(t, g.Name == "readers", g.Minimum.Received.Known(), g.Name)
		}
	})
}

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestBacklogOfSteps: what a step stores on purpose is no backlog that grew, wherever a later step receives it, and a
// step whose consumers do not keep up is named.
func TestBacklogOfSteps(t *testing.T) {
	warm := func(s *plan.Step) { s.Duration, s.Warmup = 6*time.Second, time.Second }
	slow, err := load.ParseWork("10ms")
	require.NoError(t, err)
	works := func(g *plan.Group) { g.ConsumerWork = slow }
	for _, tt := range []struct {
		name  string
		steps func(s *scenario)
		want  []string
	}{
		{"received in the warm-up of the next step", func(s *scenario) {
			s.step("fill", nil, s.senders("senders", func(g *plan.Group) { g.Rate, g.Count = rate("1000"), 3000 }))
			s.step("both", warm, s.senders("senders", paced("500")), s.readers("readers", nil))
		}, nil},
		{"received in the warm-ups of two steps", func(s *scenario) {
			s.step("fill", nil, s.senders("senders", sending(2000)))
			s.step("both", warm, s.senders("senders", paced("500")), s.readers("readers", nil))
			s.step("again", warm, s.senders("senders", paced("500")), s.readers("readers", nil))
		}, nil},
		{"kept for a later step beside a queue with consumers", func(s *scenario) {
			kept := func(g *plan.Group) { g.Destinations = []driver.Destination{{Name: "KEPT"}} }
			s.step("both", warm, s.senders("senders", paced("500")), s.readers("readers", nil),
				s.senders("keepers", func(g *plan.Group) { kept(g); paced("200")(g) }))
			s.step("rest", drainedStep, s.readers("late readers", kept))
		}, nil},
		{"a step that does not keep up", func(s *scenario) {
			s.step("good", warm, s.senders("senders", paced("50")), s.readers("readers", nil))
			s.step("bad", warm, s.senders("senders", paced("200")), s.readers("slow", works))
			s.step("rest", drainedStep, s.readers("readers", nil))
		}, []string{"step bad: received is below completed: the backlog grew by 100 msg/s, by "}},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			s := newScenario(mem.New().Factory(), false)
			tt.steps(s)
			s.plan.DrainTimeout = time.Minute
			sum := s.run(t, nil)
			require.True(t, sum.Success, "%q", sum.Problems())
			var texts []string
			for _, f := range sum.Findings {
				require.False(t, f.Kind == "queueing" && len(tt.want) == 0, f.Text)
				if f.Kind == "backlog" || f.Kind == "backlog-grew" || f.Kind == "received-elsewhere" {
					require.NotEmpty(t, f.Subject)
					texts = append(texts, f.Text)
				}
			}
			require.Len(t, texts, len(tt.want), "%q", texts)
			for i, want := range tt.want {
				require.True(t, strings.HasPrefix(texts[i], want), "%q does not begin with %q", texts[i], want)
			}
		})
	}
}

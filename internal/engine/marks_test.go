package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
)

// TestMarks: of 100 messages a second, mark 250 is passed after 2.5 s, at that rate; consumers alone pass marks of
// received messages.
func TestMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		p := newPlan(b.Factory(), func(p *flat) { steady(p); p.Rate, p.Duration = rate("100"), 6*time.Second })
		p.Steps[0].Marks = []uint64{250, 400, 1000}
		s, _ := run(t, p, nil)
		require.Len(t, s.Marks, 2)
		for i, want := range []uint64{250, 400} {
			m := s.Marks[i]
			require.Equal(t, want, m.Messages)
			require.Equal(t, "completed", m.Of)
			require.InDelta(t, float64(want)*10_000, m.Elapsed, 20_000)
			require.InDelta(t, 100, m.Average, 1)
			require.InDelta(t, 100, m.Momentary, 1)
		}
	})
}

// TestMarksOfSteps: each step counts from its own start.
func TestMarksOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		p := newPlan(b.Factory(), func(p *flat) { steady(p); p.Rate, p.Duration = rate("100"), 3*time.Second })
		second := p.Steps[0]
		p.Steps[0].Marks = []uint64{200}
		second.Name, second.Marks = "second", []uint64{100}
		p.Steps = append([]plan.Step{}, p.Steps[0], second)
		s, _ := run(t, p, nil)
		require.Len(t, s.Marks, 2)
		require.Equal(t, "second", s.Marks[1].Step)
		require.InDelta(t, 2_000_000, s.Marks[0].Elapsed, 20_000)
		require.InDelta(t, 1_000_000, s.Marks[1].Elapsed, 20_000)
	})
}

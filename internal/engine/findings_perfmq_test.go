package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestFindingsOfPerfmq tests the findings that no broker can cause: each appears exactly if its figure is set.
// TestFindings of the engine tests the others.
func TestFindingsOfPerfmq(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind  string // "": none
		count uint64
		edit  func(*stats.Summary)
	}{
		{"", 0, func(*stats.Summary) {}},
		{"late-sends", 5000, func(s *stats.Summary) { s.Total.Producers.Late = 5000 }},
		{"", 0, func(s *stats.Summary) { s.Total.Producers.Late = 5 }},
		{"late-excused", 5000, func(s *stats.Summary) { s.Total.Producers.Late, s.Tester.LateExcused = 5000, 5000 }},
		{"pause", 2, func(s *stats.Summary) { s.Tester.Pauses = 2 }},
		{"clock-forward", 1_500_000, func(s *stats.Summary) { s.Tester.ClockForward = 1_500_000 }},
		{"clock-backward", 1_500_000, func(s *stats.Summary) { s.Tester.ClockBackward = 1_500_000 }},
	} {
		s := &stats.Summary{Result: result.Result{Total: result.Counts{Producers: &result.Producers{Sent: 100_000, Completed: 100_000}}}}
		tt.edit(s)
		findPerfmq(s)
		found := s.Findings
		if tt.kind == "" {
			require.Empty(t, found)
			continue
		}
		require.Len(t, found, 1, tt.kind)
		require.Equal(t, tt.kind, found[0].Kind)
		require.Equal(t, tt.count, found[0].Count)
		require.False(t, found[0].Failure)
		require.NotEmpty(t, found[0].Subject)
	}
}

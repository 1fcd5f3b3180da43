package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/sweep/record"
)

// TestLeft: a run takes as long as others on average; before the first has ended, as long as its plan says.
func TestLeft(t *testing.T) {
	t.Parallel()
	s := &Sweep{state: &record.Sweep{Repeats: 10}, Config: Config{Settle: time.Second}, lengths: map[int]time.Duration{1: 10 * time.Second}}
	s.state.Arrange(record.Cells(nil, nil))
	left, known := s.left()
	require.True(t, known)
	require.Equal(t, 10*11*time.Second, left)
	s.lengths[1] = 0
	_, known = s.left()
	require.False(t, known)
	for i, took := range []time.Duration{12 * time.Second, 20 * time.Second} {
		s.state.Runs[i].State, s.state.Runs[i].End = record.Done, took.Microseconds()
	}
	left, _ = s.left()
	require.Equal(t, 8*17*time.Second, left)
}

// TestHashCell: the embedded broker and its faults are part of what a sweep runs.
func TestHashCell(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range []plan.Plan{{}, {Embedded: true}, {Embedded: true, Faults: "rate=5"}} {
		r := run.Run{Plan: &of, Secrets: new(safetext.Secrets)}
		var b strings.Builder
		require.NoError(t, hashCell(&b, nil, &r))
		seen[b.String()] = true
	}
	require.Len(t, seen, 3)
}

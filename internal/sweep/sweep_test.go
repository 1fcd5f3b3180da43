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

// fiveCells is a sweep of five cells with two runs each, all of the same length.
func fiveCells(l length) *Sweep {
	s := &Sweep{state: &record.Sweep{Axes: []record.Axis{{Name: "n", Values: []string{"1", "2", "3", "4", "5"}}}, Repeats: 2}, lengths: map[int]length{}}
	s.state.Arrange(record.Cells(s.state.Axes, nil))
	for cell := range 5 {
		s.lengths[cell+1] = l
	}
	return s
}

// TestLeft: a run takes as long as its plan says, and the time that others took beyond theirs; one that ends by a count,
// as long as others on average.
func TestLeft(t *testing.T) {
	t.Parallel()
	s := fiveCells(length{known: 10 * time.Second})
	s.Settle = time.Second
	require.Equal(t, "about 1m49s, and what opening, draining and closing take", s.estimate())
	left, known := s.left()
	require.True(t, known)
	require.Equal(t, 10*11*time.Second, left)
	done := func(i int, took time.Duration) {
		r := &s.state.Runs[i]
		r.State, r.Start, r.End = record.Done, 5, 5+took.Microseconds()
	}
	done(0, 12*time.Second)
	left, _ = s.left()
	require.Equal(t, 9*13*time.Second, left)
	done(1, 20*time.Second)
	s.Settle = 0
	left, _ = s.left()
	require.Equal(t, 8*16*time.Second, left)

	s = fiveCells(length{open: true})
	require.Equal(t, "the time left is known when the first run has ended", s.estimate())
	_, known = s.left()
	require.False(t, known)
	done(0, 30*time.Second)
	left, known = s.left()
	require.True(t, known)
	require.Equal(t, 9*30*time.Second, left)
	s.lengths[1] = length{known: 3 * time.Second}
	require.Equal(t, "at least 6s, and longer by what ends by a count, when it is idle, or with a command", s.estimate())
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

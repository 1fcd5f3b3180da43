package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestCommits: transactions are counted, timed, and belong to the phase in which the broker was asked to commit them.
func TestCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Latency = 2 * time.Millisecond })
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Rate, p.Duration, p.Warmup = rate("100"), 4*time.Second, 2*time.Second
			p.CommitInterval = 10
		}), nil)
		require.True(t, s.Success, s.Problems())
		require.EqualValues(t, 40, s.Total[result.Commits])
		require.EqualValues(t, 20, s.Measured[result.Commits])
		require.Zero(t, s.Total[result.CommitsFailed])
		require.EqualValues(t, 20, s.Latencies[result.Commit].Count)
		require.InDelta(t, 2000, s.Latencies[result.Commit].Mean(), 10, "microseconds")
		require.EqualValues(t, b.Stats().Commits, s.Total[result.Commits], "the broker's own count")
	})
}

// TestCommitsOfBothSides: commits of consumers count as well, and commits that the broker does not confirm are told
// apart.
func TestCommitsOfBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Count, p.CommitInterval, p.TransactionSize = 100, 10, 5
		}), nil)
		require.True(t, s.Success, s.Problems())
		require.EqualValues(t, 10+20, s.Total[result.Commits])
		require.EqualValues(t, b.Stats().Commits, s.Total[result.Commits], "the broker's own count")
		require.EqualValues(t, 30, s.Latencies[result.Commit].Count)
	})
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.FailCommit = 4 })
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Role, p.Count, p.CommitInterval = plan.Producer, 100, 10
		}), nil)
		require.False(t, s.Success)
		require.EqualValues(t, 8, s.Total[result.Commits])
		require.EqualValues(t, 2, s.Total[result.CommitsFailed])
		require.EqualValues(t, b.Stats().CommitsRefused, s.Total[result.CommitsFailed], "the broker's own count")
		require.EqualValues(t, 80, s.Total[result.Completed])
		require.EqualValues(t, 8, s.Latencies[result.Commit].Count)
	})
}

package merge_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/merge"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// apart runs the two shards of a load of 200 messages per second, the second one later than the first.
func apart(t *testing.T, base string, later time.Duration, edit func(*plan.Plan, *plan.Group)) (dirs []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := mem.New()
		var running sync.WaitGroup
		for i := range 2 {
			p := newPlan(b.Factory(), func(p *plan.Plan, g *plan.Group) {
				g.Producers, g.Consumers, g.Rate, g.MaxPending = 2, 2, schedule(t, "200"), 0
				p.Steps[0].Duration, p.Verify = 10*time.Second, false
				edit(p, g)
			})
			p.Shard, p.RunID, p.StartAt = plan.Shard{Number: i + 1, Of: 2}, 77, time.Now().Add(time.Second+time.Duration(i)*later)
			dir := filepath.Join(base, fmt.Sprint(i+1))
			dirs = append(dirs, dir)
			running.Go(func() { carryOut(t, dir, *p) })
		}
		running.Wait()
	})
	return dirs
}

// TestShardsApart: rates are of the time in which all shards measured. If that is too short, the rates are unknown,
// thresholds on them fail, and the merge has a problem.
func TestShardsApart(t *testing.T) {
	count := func(p *plan.Plan, g *plan.Group) { g.Count, p.Steps[0].Duration = 2000, 0 }
	for name, tt := range map[string]struct {
		later   time.Duration
		edit    func(*plan.Plan, *plan.Group)
		average float64 // 0 for none
	}{
		"half a second apart":         {500 * time.Millisecond, nil, 200},
		"three seconds apart":         {3 * time.Second, nil, 0},
		"counts, three seconds apart": {3 * time.Second, count, 2000. / 13},
		"counts, one after the other": {time.Minute, count, 0},
	} {
		t.Run(name, func(t *testing.T) {
			edit := tt.edit
			if edit == nil {
				edit = func(*plan.Plan, *plan.Group) {}
			}
			dirs := apart(t, t.TempDir(), tt.later, edit)
			m, err := merge.Read(dirs, merge.Options{Thresholds: parsed(t,
				"completed.avg >= 80", "received.avg >= 80", "completed.min >= 80", "sent.avg > 0", "received.max > 0")})
			require.NoError(t, err)
			require.EqualValues(t, 2000, m.Total.Producers.Completed)
			if tt.average > 0 {
				require.True(t, m.Outcome.Success, m.Outcome.Problems)
				require.InEpsilon(t, tt.average, *m.Figures.Completed, 0.005)
				require.InEpsilon(t, tt.average, *m.Steps[0].Figures.Received, 0.1, "the first shard has a share of the second's")
				require.True(t, m.Thresholds[0].Kept && m.Thresholds[1].Kept, "%v", m.Thresholds)
				return
			}
			require.Nil(t, m.Figures.Completed)
			require.Nil(t, m.Steps[0].Figures.Received)
			for i := range m.Thresholds {
				require.False(t, m.Thresholds[i].Kept, m.Thresholds[i].String())
			}
			require.False(t, m.Outcome.Success)
			require.Equal(t, 1, m.Outcome.Status)
			require.Len(t, m.Outcome.Problems, 1)
			require.Regexp(t, `^step load: the shards measured together for only [0-9.]+% of their time`, m.Outcome.Problems[0])
		})
	}
}

// TestKilledShard: a merged result with a killed shard has the sums of both shards and is not complete, also after it was
// written and read again.
func TestKilledShard(t *testing.T) {
	base := t.TempDir()
	dirs := apart(t, base, 0, func(*plan.Plan, *plan.Group) {})
	require.NoError(t, os.Remove(filepath.Join(dirs[1], result.ResultFile)))
	_, err := merge.Read(dirs, merge.Options{})
	require.ErrorIs(t, err, merge.ErrMissing)
	m, err := merge.Read(dirs, merge.Options{Partial: true})
	require.NoError(t, err)
	require.False(t, m.Complete)
	merged := filepath.Join(base, "merged")
	require.NoError(t, merge.Write(merged, m))
	read, err := result.Read(merged)
	require.NoError(t, err)
	require.False(t, read.Complete)
	require.EqualValues(t, 2000, read.Total.Producers.Completed)
	require.EqualValues(t, 2000, read.Latencies[result.Transfer].Count)
	require.EqualValues(t, 2000, read.Steps[0].Latencies[result.Transfer].Count)
}

package merge_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/merge"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// grow appends pieces of random lengths to copies of the files of shards, the histograms of a row perhaps before it, and
// calls turn after each piece.
func grow(t *testing.T, from, to []string, turn func(ended func(int) bool)) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	type file struct {
		path  string
		bytes []byte
		shard int
	}
	var files []*file
	for i, dir := range from {
		require.NoError(t, os.MkdirAll(to[i], 0o700))
		for _, name := range []string{result.RowsFile, result.LatenciesFile} {
			files = append(files, &file{filepath.Join(to[i], name), musttest.Get(os.ReadFile(filepath.Join(dir, name)))(t), i})
		}
	}
	ended := func(shard int) bool {
		for _, f := range files {
			if f.shard == shard && len(f.bytes) > 0 {
				return false
			}
		}
		return true
	}
	for left := len(files); left > 0; {
		left = 0
		for _, f := range files {
			n := min(random.IntN(2000), len(f.bytes))
			w := musttest.Get(os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))(t)
			_, err := w.Write(f.bytes[:n])
			require.NoError(t, err)
			require.NoError(t, w.Close())
			if f.bytes = f.bytes[n:]; len(f.bytes) > 0 {
				left++
			}
		}
		turn(ended)
	}
	turn(ended)
}

func folders(t *testing.T, n int) (dirs []string) {
	base := t.TempDir()
	for i := range n {
		dirs = append(dirs, filepath.Join(base, string(rune('a'+i))))
	}
	return dirs
}

func tails(dirs []string) (list result.Tails) {
	for _, dir := range dirs {
		list = append(list, &result.Tail{Dir: dir})
	}
	return list
}

// shown is a page that notes what it gets.
type shown struct {
	heads     []result.Head
	rows      []result.Row
	last      *stats.Summary
	completed uint64
}

func (s *shown) Start(head result.Head) error { s.heads = append(s.heads, head); return nil }
func (s *shown) Look(of *stats.Snapshot)      { s.last = of.SoFar }

func (s *shown) Row(row result.Row) error {
	s.rows, s.completed = append(s.rows, row), s.completed+row.Values()[result.Completed]
	return nil
}

// The rows that are joined while three folders grow are those of the merged result, and so are their sums.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlan(mem.New().Factory(), func(p *plan.Plan, g *plan.Group) {
			p.Steps[0].Duration, p.Steps[0].Warmup = 6*time.Second, 2*time.Second
			g.Producers, g.Consumers, g.Rate = 3, 3, schedule(t, "300")
			p.Thresholds = parsed(t, "completed >= 1", "completed >= 1M")
			p.StartAt = time.Now().Add(time.Second)
		})
		from := inShards(t, t.TempDir(), p, 0, 0, 0)
		to := folders(t, len(from))
		page := &shown{}
		live := merge.Live{Tails: tails(to), Page: page}
		grow(t, from, to, func(ended func(int) bool) { require.Empty(t, live.Turn(nil, ended)) })
		m := musttest.Get(merge.Read(from, merge.Options{}))(t)
		heads, rows, last := page.heads, page.rows, page.last
		require.Len(t, heads, 1)
		assert.Equal(t, m.RunID, heads[0].RunID)
		assert.Nil(t, heads[0].Shard)
		require.Len(t, rows, len(m.Rows))
		for i := range rows {
			want, got := &m.Rows[i], &rows[i]
			assert.Equal(t, want.Values(), got.Values(), i)
			assert.Equal(t, [2]string{want.Step, want.Phase}, [2]string{got.Step, got.Phase})
			assert.Equal(t, want.Elapsed, got.Elapsed)
			for kind := range want.Latencies {
				assert.Equal(t, bars(want.Latencies[kind]), bars(got.Latencies[kind]), "row %d, latency %d", i, kind)
			}
		}
		assert.Equal(t, m.Total.Values(), last.Total.Values())
		for kind := range m.Latencies {
			if !result.Kinds()[kind].Stage {
				assert.Equal(t, bars(m.Latencies[kind]), bars(last.Latencies[kind]), kind)
			}
		}
		require.Len(t, last.Thresholds, 2)
		assert.True(t, last.Thresholds[0].Kept)
		assert.False(t, last.Thresholds[1].Kept)
	})
}

// A threshold is broken by the rows of all shards together, at the second in which they reach it; one on a group or a step
// likewise, and what a peer adds to a plan changes nothing.
func TestLiveAborts(t *testing.T) {
	for _, c := range []struct {
		text, step string
		at         uint64 // completed messages from which on it is broken; 0 for never
	}{
		{"completed < 900", "", 900},
		{"completed < 900", plan.OnlyStep, 900},
		{"completed < 5000", "", 0},
		{"group.all.completed < 900", "", 900},
		{"completed.max < 10/s", "", 600},
		{"completed.min > 10/s", "", 0},
		{"completed < 900", "elsewhere", 0},
	} {
		t.Run(c.text+" "+c.step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlan(mem.New().Factory(), func(p *plan.Plan, g *plan.Group) {
					p.Steps[0].Duration, g.Name = 6*time.Second, "all"
					g.Producers, g.Consumers, g.Rate = 3, 3, schedule(t, "300")
					p.StartAt = time.Now().Add(time.Second)
				})
				from := inShards(t, t.TempDir(), p, 0, 0, 0)
				to := folders(t, len(from))
				page, broke := &shown{}, uint64(0)
				live := merge.Live{Tails: tails(to), Page: page}
				aborts := []threshold.Abort{{Step: c.step, Threshold: c.text}}
				grow(t, from, to, func(ended func(int) bool) {
					if why := live.Turn(aborts, ended); why != "" && broke == 0 {
						broke = page.completed
						require.Contains(t, why, "threshold failed: "+c.text)
					}
				})
				require.Equal(t, c.at > 0, live.Broken)
				if c.at == 0 {
					require.Zero(t, broke)
					return
				}
				require.GreaterOrEqual(t, broke, c.at)
				require.Less(t, broke, c.at+700, "pieces are longer than a second")
			})
		})
	}
}

// A file that no perfmq writes ends it with an error, and a shard that hands over nothing holds the others up for a minute.
func TestLiveHostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlan(mem.New().Factory(), func(p *plan.Plan, g *plan.Group) {
			p.Steps[0].Duration = 80 * time.Second
			g.Producers, g.Consumers, g.Rate = 2, 2, schedule(t, "20")
			p.StartAt = time.Now().Add(time.Second)
		})
		from := inShards(t, t.TempDir(), p, 0, 0)
		page := &shown{}
		live := merge.Live{Tails: tails([]string{from[0], t.TempDir()}), Page: page}
		require.Empty(t, live.Turn(nil, func(int) bool { return false }))
		require.InDelta(t, 20, len(page.rows), 3)
		bad := t.TempDir()
		for text, want := range map[string]string{"{}\n": "the format is", "[\n": "unexpected end of JSON"} {
			require.NoError(t, os.WriteFile(filepath.Join(bad, result.RowsFile), []byte(text), 0o600))
			live = merge.Live{Tails: tails([]string{bad})}
			require.Contains(t, live.Turn(nil, func(int) bool { return false }), want)
		}
	})
}

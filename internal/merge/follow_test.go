package merge_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/merge"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// windowed is a run of 30 s with a window of 3 s at a broker that loses and doubles messages.
func windowed(t *testing.T, b *mem.Broker) *execution {
	t.Helper()
	b.Set(mem.Options{Lose: 100, Duplicate: 70, DeliveryLatency: 300 * time.Millisecond})
	return newPlan(b.Factory(), func(p *plan.Plan, g *plan.Group) {
		p.VerifyWindow, p.Steps[0].Duration = 3*time.Second, 30*time.Second
		g.Rate, g.Producers, g.Consumers, g.MaxPending = schedule(t, "100"), 3, 3, 100
	})
}

// follower judges folders, and keeps what it says.
type follower struct {
	merge.Follower
	mu   sync.Mutex
	said []string
}

func follow(dirs []string, thresholds ...threshold.Threshold) *follower {
	f := &follower{Follower: merge.Follower{Dirs: dirs, Thresholds: thresholds}}
	f.Say = func(text string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.said = append(f.said, text)
	}
	return f
}

func (f *follower) has(text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Contains(strings.Join(f.said, "\n"), text)
}

func requireTruth(t *testing.T, b *mem.Broker, v *verify.Result) {
	t.Helper()
	truth := b.Stats()
	require.NotZero(t, truth.Lost)
	require.NotZero(t, truth.Duplicated)
	require.EqualValues(t, 3000, v.Sent)
	require.Equal(t, result.Verified{
		Expected: 3000, Received: 3000 - truth.Lost, Once: 3000 - truth.Lost - truth.Duplicated, Lost: truth.Lost,
		Duplicates: truth.Duplicated, Redelivered: truth.Redelivered, Disordered: v.Total.Disordered,
	}, v.Total)
}

// The shards of a run are followed: losses are known while it continues, and at the end all counts are those of the
// broker. No shard judges anything by itself.
func TestFollowShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, base := mem.New(), t.TempDir()
		p := windowed(t, b)
		dirs := []string{filepath.Join(base, "shard-1"), filepath.Join(base, "shard-2"), filepath.Join(base, "shard-3")}
		f := follow(dirs)
		running := make(chan struct{})
		go func() {
			inShards(t, base, p, 0, 0, 0)
			close(running)
		}()
		time.AfterFunc(15*time.Second, func() {
			if !f.has(" lost: 1: producer-") {
				t.Error("a loss is known during the run")
			}
		})
		v, broken, err := f.Follow(t.Context())
		require.NoError(t, err)
		require.Nil(t, broken)
		<-running
		requireTruth(t, b, v)
		for _, dir := range dirs {
			r := musttest.Get(result.Read(dir))(t)
			require.Nil(t, r.Verification)
			require.NoFileExists(t, filepath.Join(dir, result.VerifyFile))
		}
	})
}

// A loss ends the following if a threshold wants it.
func TestFollowUntilThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, base := mem.New(), t.TempDir()
		p := windowed(t, b)
		running := make(chan struct{})
		go func() {
			inShards(t, base, p, 0, 0)
			close(running)
		}()
		demand := musttest.Get(threshold.Parse("lost < 3"))(t)
		demand.Abort = true
		v, broken, err := follow([]string{filepath.Join(base, "shard-1"), filepath.Join(base, "shard-2")}, demand).Follow(t.Context())
		require.NoError(t, err)
		require.NotNil(t, broken)
		require.GreaterOrEqual(t, v.Total.Lost, uint64(3))
		require.Less(t, v.Total.Lost, b.Stats().Lost+20)
		select {
		case <-running:
			t.Error("it ended late")
		default:
		}
		<-running
	})
}

// Folders that are copied piece by piece, such as by rsync, give the same counts: a file is read when it is whole.
func TestFollowGrowingFolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, base, to := mem.New(), t.TempDir(), t.TempDir()
		from := inShards(t, base, windowed(t, b), 0, 0)
		var dirs []string
		var copying sync.WaitGroup
		for _, dir := range from {
			copied := filepath.Join(to, filepath.Base(dir))
			dirs = append(dirs, copied)
			numbers := filepath.Join(copied, result.NumbersDir)
			copying.Go(func() {
				for n := 1; ; n++ {
					whole, err := os.ReadFile(filepath.Join(dir, result.NumbersDir, result.NumbersFile(n)))
					if err != nil {
						return
					}
					if n == 1 {
						time.Sleep(3 * time.Second) //nolint:forbidigo // of a fake clock
						require.NoError(t, os.MkdirAll(numbers, 0o700))
					}
					for _, length := range []int{0, len(whole) / 2, len(whole)} {
						require.NoError(t, os.WriteFile(filepath.Join(numbers, result.NumbersFile(n)), whole[:length], 0o600))
						time.Sleep(time.Second) //nolint:forbidigo // of a fake clock
					}
				}
			})
		}
		v, _, err := follow(dirs).Follow(t.Context())
		require.NoError(t, err)
		copying.Wait()
		requireTruth(t, b, v)
	})
}

// A process that writes no more is not waited for; its next run in the folder is followed, too, and an interrupt ends it.
func TestFollowAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, base, to := mem.New(), t.TempDir(), t.TempDir()
		from := inShards(t, base, windowed(t, b), 0, 0)[0] // with two of three producers
		copyTo := func(run string, files int) {
			dir := filepath.Join(to, run, result.NumbersDir)
			require.NoError(t, os.MkdirAll(dir, 0o700))
			for n := 1; n <= files; n++ {
				whole := musttest.Get(os.ReadFile(filepath.Join(from, result.NumbersDir, result.NumbersFile(n))))(t)
				require.NoError(t, os.WriteFile(filepath.Join(dir, result.NumbersFile(n)), whole, 0o600))
			}
		}
		copyTo("run-1", 10)
		ctx, stop := context.WithCancel(t.Context())
		f := follow([]string{to})
		time.AfterFunc(40*time.Second, func() {
			if !f.has("gone: ") {
				t.Error("nothing has come for 30 s")
			}
			copyTo("run-2", 5)
		})
		time.AfterFunc(45*time.Second, stop)
		v, _, err := f.Follow(ctx)
		require.NoError(t, err)
		require.InDelta(t, 667, v.Sent, 80)
		require.NotZero(t, v.Total.Received)
		require.NotZero(t, v.Total.Duplicates, "run-2 has the same messages")
	})
}

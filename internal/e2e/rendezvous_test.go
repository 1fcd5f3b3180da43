//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	perfmqresult "github.com/perfmq/perfmq/pkg/result"
)

// fleet is a rendezvous with its shards, as processes.
type fleet struct {
	dir    string // of the merged result
	host   *process
	shards []*process
	temp   string // of the shards
}

// meet starts a rendezvous and three shards of a load.
func meet(t *testing.T, hostArgs, loadArgs []string) *fleet {
	t.Helper()
	base := t.TempDir()
	f := &fleet{dir: filepath.Join(base, "all"), temp: filepath.Join(base, "temp")}
	require.NoError(t, os.Mkdir(f.temp, 0o700))
	token := filepath.Join(base, "token")
	require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600))
	at := freeAddresses(t, 1)[0]
	f.host = start(t, append([]string{"merge", "--rendezvous", at, "--shards", "3", "--token-file", token, "--result", f.dir}, hostArgs...)...)
	for i := range 3 {
		args := append([]string{}, loadArgs...)
		args = append(args, "--shard", fmt.Sprint(i+1, "/3"), "--rendezvous", "http://"+at, "--token-file", token)
		f.shards = append(f.shards, startIn(t, []string{"TMPDIR=" + f.temp}, args...))
	}
	return f
}

func (f *fleet) merged(t *testing.T) *perfmqresult.Result {
	t.Helper()
	return musttest.Get(perfmqresult.Read(f.dir))(t)
}

// left returns the folders of results that no rendezvous has.
func (f *fleet) left(t *testing.T) []string {
	t.Helper()
	return musttest.Get(filepath.Glob(filepath.Join(f.temp, "perfmq-shard-*", "result", perfmqresult.ResultFile)))(t)
}

// Three processes meet: they begin and end together, however that comes about, and their results are joined.
func TestRendezvous(t *testing.T) {
	t.Parallel()
	url := serve(t).at("amqp")
	load := func(t *testing.T, more ...string) []string {
		return append([]string{
			"amqp", "client", "--url", url, "--producers", "3", "--consumers", "3", "--rate", "300", "--max-pending", "100", "--verify",
			"queue://" + unique(t, "queue"),
		}, more...)
	}
	t.Run("to the end, with a page", func(t *testing.T) {
		t.Parallel()
		web := freeAddresses(t, 1)[0]
		f := meet(t, []string{"--web", web, "--threshold", "completed.avg > 150"}, load(t, "--duration", "4s"))
		f.host.told("the load begins at ")
		eventually(t, "rows of all shards on the page", func() bool {
			answer, err := http.Get("http://" + web) //nolint:noctx // it is answered in seconds
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			text := musttest.Get(io.ReadAll(answer.Body))(t)
			return answer.StatusCode == http.StatusOK && strings.Contains(string(text), "completed.avg")
		})
		for _, p := range f.shards {
			r := p.in(t).wait(limit)
			assert.Equal(t, statusOK, r.status, r.stderr)
		}
		r := f.host.in(t).wait(limit)
		require.Equal(t, statusOK, r.status, r.stderr+r.stdout)
		m := f.merged(t)
		require.EqualValues(t, 1200, m.Total.Producers.Sent+*m.Figures.Unsent)
		require.Equal(t, m.Total.Producers.Sent, m.Verification.Total.Once)
		require.Len(t, m.Parts, 3)
		for _, part := range m.Parts {
			require.NotNil(t, part.Clock)
			require.LessOrEqual(t, max(part.Clock.Start.Ahead, -part.Clock.Start.Ahead), perfmqresult.Difference(part.Clock.Start.Error))
			require.NotNil(t, part.Limit)
		}
		require.Len(t, m.Thresholds, 1)
		require.Empty(t, musttest.Get(os.ReadDir(f.temp))(t), "the shards keep nothing")
	})
	t.Run("kill -9 of a shard", func(t *testing.T) {
		t.Parallel()
		f := meet(t, nil, load(t, "--duration", "5m"))
		rows := filepath.Join(f.dir, "shard-2", perfmqresult.LatenciesFile)
		eventually(t, "rows of the shard", func() bool {
			info, err := os.Stat(rows)
			return err == nil && info.Size() > 4096
		})
		f.shards[1].signal(syscall.SIGKILL)
		const died = "shard 2/3 "
		for _, i := range []int{0, 2} {
			r := f.shards[i].in(t).wait(limit)
			assert.Equal(t, statusInterrupted, r.status, r.stderr)
			assert.Contains(t, r.stderr, "stopping: the rendezvous ends the run: "+died)
		}
		r := f.host.in(t).wait(limit)
		require.Equal(t, statusFailed, r.status, r.stderr)
		require.Regexp(t, `problem: +shard 2/3 \(.*\) died, or cannot be reached`, r.stdout)
		m := f.merged(t)
		require.Len(t, m.Parts, 3, "what the dead one had measured is there")
		require.False(t, m.Complete)
	})
	t.Run("interrupt of the rendezvous", func(t *testing.T) {
		t.Parallel()
		f := meet(t, nil, load(t, "--duration", "5m"))
		eventually(t, "rows", func() bool {
			_, err := os.Stat(filepath.Join(f.dir, "shard-3", perfmqresult.RowsFile))
			return err == nil
		})
		f.host.signal(os.Interrupt)
		for _, p := range f.shards {
			r := p.in(t).wait(limit)
			assert.Equal(t, statusInterrupted, r.status, r.stderr)
		}
		r := f.host.in(t).wait(limit)
		require.Equal(t, statusInterrupted, r.status, r.stderr)
		m := f.merged(t)
		require.True(t, m.Complete)
		total := &m.Verification.Total
		require.Equal(t, total.Expected, total.Once+total.Left, "consumers that ended may leave messages at the broker")
	})
	t.Run("kill -9 of the rendezvous", func(t *testing.T) {
		t.Parallel()
		f := meet(t, nil, load(t, "--duration", "14s"))
		f.host.told("the load begins at ")
		f.shards[0].printed("---")
		f.host.signal(syscall.SIGKILL)
		for _, p := range f.shards {
			r := p.in(t).wait(limit)
			assert.Equal(t, statusFailed, r.status, r.stderr)
			assert.Contains(t, r.stderr, "the rendezvous is lost: this load continues to its end")
			assert.Contains(t, r.stderr, "hint: join the folders of all shards by perfmq merge DIR...")
		}
		left := f.left(t)
		require.Len(t, left, 3)
		args := []string{"merge", "--result", f.dir}
		for _, file := range left {
			args = append(args, filepath.Dir(file))
		}
		r := run(t, limit, args...)
		require.Equal(t, statusOK, r.status, r.stderr)
		m := f.merged(t)
		require.EqualValues(t, 4200, m.Total.Producers.Sent+*m.Figures.Unsent)
	})
	t.Run("a threshold ends all", func(t *testing.T) {
		t.Parallel()
		file, queue := filepath.Join(t.TempDir(), "abort.yaml"), unique(t, "queue")
		require.NoError(t, os.WriteFile(file, []byte(`
broker: {protocol: amqp, url: "`+url+`"}
groups:
  senders: {role: producer, destination: queue://`+queue+`, producers: 3, rate: 300, max-pending: 100}
  readers: {role: consumer, destination: queue://`+queue+`, consumers: 3}
duration: 5m
thresholds:
  - {threshold: "completed < 600", abort: true}
`), 0o600))
		f := meet(t, nil, []string{"run", file}) // none of them completes 600 before the others have as many
		for _, p := range f.shards {
			r := p.in(t).wait(limit)
			assert.Equal(t, statusInterrupted, r.status, r.stderr)
			assert.Contains(t, r.stderr, "the rendezvous ends the run: threshold failed: completed < 600")
		}
		r := f.host.in(t).wait(limit)
		require.Equal(t, statusThreshold, r.status, r.stderr)
		m := f.merged(t)
		require.True(t, m.Outcome.Aborted)
		require.Less(t, m.Total.Producers.Completed, uint64(1800))
	})
	t.Run("a wrong token", func(t *testing.T) {
		t.Parallel()
		f := meet(t, []string{"--rendezvous-timeout", "10s"}, load(t, "--duration", "1s"))
		wrong := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(wrong, []byte("another-token-0123"), 0o600))
		f.host.told("the rendezvous of 3 shards is at ")
		at := strings.Fields(f.host.stderr.String()[strings.Index(f.host.stderr.String(), "http"):])[0]
		r := run(t, limit, load(t, "--duration", "1s", "--shard", "1/3", "--rendezvous", at, "--token-file", wrong)...)
		require.Equal(t, statusConnect, r.status)
		require.Contains(t, r.stderr, "the token is wrong\nhint: give both sides the same --token-file\n")
		require.NotContains(t, r.stderr+f.host.output(), "another-token")
		f.host.told("refused a request from 127.0.0.1")
	})
}

//go:build unix

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	perfmqresult "github.com/perfmq/perfmq/pkg/result"
)

// Three processes as the pods of an Indexed Job make one load without a rendezvous, and their results are joined: every
// message is found, and their clocks, which are one, agree.
func TestShardsOfAJob(t *testing.T) {
	t.Parallel()
	url := serve(t).at("amqp")
	base := t.TempDir()
	at := time.Now().Add(8 * time.Second).Truncate(time.Second)
	var shards []*process
	var dirs []string
	for i := range 3 {
		dirs = append(dirs, filepath.Join(base, fmt.Sprintf("load-%d", i)))
		shards = append(shards, startIn(t, []string{fmt.Sprint("JOB_COMPLETION_INDEX=", i)},
			"amqp", "client", "--shard", "3", "--run-id", "uid-1", "--start-at", fmt.Sprint(at.Unix()), "--url", url, "--wait-for-broker", "1m",
			"--producers", "4", "--consumers", "4", "--max-pending", "100", "--rate", "900", "--warmup", "1s", "--duration", "4s", "--verify",
			"--result", dirs[i], "queue://perfmq"))
	}
	for _, p := range shards {
		r := p.wait(limit)
		require.Equal(t, statusOK, r.status, r.stderr)
	}
	all := filepath.Join(base, "all")
	r := run(t, limit, append([]string{"merge", "--result", all}, dirs...)...)
	require.Equal(t, statusOK, r.status, r.stdout)
	m := musttest.Get(perfmqresult.Read(all))(t)
	// A busy machine may not send the last messages in time. The result counts them as unsent.
	require.EqualValues(t, 3600, m.Total.Producers.Sent+*m.Figures.Unsent)
	require.Equal(t, m.Total.Producers.Sent, m.Verification.Total.Once)
	require.InDelta(t, at.UnixMicro(), m.Start, 1e6, "as two readings of the clock agree on a busy machine")
	require.Len(t, m.Parts, 3)
	for i, part := range m.Parts {
		require.Equal(t, perfmqresult.Shard{Number: i + 1, Of: 3}, *part.Shard)
		if part.Clock == nil { // on a machine that sets its clock, or holds a process up, meanwhile: then it says so
			require.Contains(t, strings.Join(m.Outcome.Warnings, "\n"), "is not known", "messages went all ways")
			t.Log(m.Outcome.Warnings)
			continue
		}
		require.LessOrEqual(t, max(part.Clock.Start.Ahead, -part.Clock.Start.Ahead), perfmqresult.Difference(part.Clock.Start.Error))
	}
	r = run(t, limit, append([]string{"verify"}, dirs[:2]...)...)
	require.Equal(t, statusUsage, r.status)
	require.Contains(t, r.stderr, "shards of run ")
}

package result_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// The slowest messages of a trace, whatever the order of its lines; a line that a kill has cut off is no mistake.
func TestSlowest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := musttest.Get(result.NewWriter(filepath.Join(dir, "run")))(t)
	require.NoError(t, w.Start(result.Head{Start: 1}))
	event := func(id, event string, time int64, worker string) result.TraceEvent {
		return result.TraceEvent{ID: id, Event: event, Time: time, Worker: worker}
	}
	require.NoError(t, w.Trace([]result.TraceEvent{
		event("1-0-5", "received", 180, "c"), event("1-0-5", "settled", 190, "c"), event("1-0-5", "due", 100, "p"),
	}))
	require.NoError(t, w.Trace([]result.TraceEvent{
		event("1-0-5", "sent", 110, "p"), event("1-0-5", "completed", 120, "p"), event("1-0-5", "redelivered", 300, "d"),
		event("1-0-6", "sent", 200, "p"), event("1-0-6", "resent", 300, "p"), event("1-0-6", "unconfirmed", 500, "p"),
		event("1-0-7", "sent", 300, "p"), event("1-0-7", "completed", 310, "p"),
		event("1-0-8", "sent", 300, "p"), event("1-0-9", "received", 300, "p"),
		{ID: "2-0-1", Event: "received", Time: 350, Worker: "c", Sent: 330},
	}))
	require.NoError(t, w.Close())
	path := filepath.Join(dir, "run", result.TraceFile)
	text := musttest.Get(os.ReadFile(path))(t)
	require.NoError(t, os.WriteFile(path, append(text, `{"id":"1-0-1","ev`...), 0o600))
	want := []result.Traced{
		{ID: "1-0-6", Sent: 200, Ended: 500, End: "unconfirmed", Resent: 1, Producer: "p"},
		{
			ID: "1-0-5", Due: 100, Sent: 110, Ended: 120, End: "completed", Received: 180, Settled: 190, Deliveries: 2,
			Redelivered: 1, Producer: "p", Consumer: "c",
		},
		{ID: "2-0-1", Sent: 330, Received: 350, Deliveries: 1, Consumer: "c"},
		{ID: "1-0-7", Sent: 300, Ended: 310, End: "completed", Producer: "p"},
	}
	require.Equal(t, want, musttest.Get(result.Slowest(100, filepath.Join(dir, "run")))(t))
	require.Equal(t, want[:1], musttest.Get(result.Slowest(1, filepath.Join(dir, "run")))(t))
	require.Empty(t, musttest.Get(result.Slowest(1, dir))(t), "there is no trace")
	a, b := filepath.Join(dir, "out"), filepath.Join(dir, "in")
	for path, events := range map[string][]result.TraceEvent{
		a: {event("1-0-5", "sent", 100, "p"), event("1-0-5", "completed", 110, "p")}, b: {event("1-0-5", "received", 150, "c")},
	} {
		w := musttest.Get(result.NewWriter(path))(t)
		require.NoError(t, w.Start(result.Head{Start: 1}))
		require.NoError(t, w.Trace(events))
		require.NoError(t, w.Close())
	}
	joined := []result.Traced{
		{ID: "1-0-5", Sent: 100, Ended: 110, End: "completed", Received: 150, Deliveries: 1, Producer: "p", Consumer: "c"},
	}
	require.Equal(t, joined, musttest.Get(result.Slowest(9, a, b))(t), "of a producer and a consumer of their own")
	for _, line := range []string{"", "x", `{"id":"","time":1}`, `{"id":"1-0-1","time":-1}`, `{"id":"1-0-1","time":1e16}`} {
		require.NoError(t, os.WriteFile(path, []byte(line+"\n"), 0o600))
		_, err := result.Slowest(1, filepath.Join(dir, "run"))
		require.ErrorContains(t, err, "trace.jsonl, line 1: ", line)
	}
}

package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/run"
)

// Seven messages of an earlier run are in the queue: perfmq reports the first when it arrives, counts them exactly, and
// fails on request.
func TestForeign(t *testing.T) {
	b, err := broker.Start(broker.Config{Listen: map[string]string{broker.AMQP: "127.0.0.1:0"}})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	perfmq := func(args string) ended {
		var stdout, stderr output
		status := Main(Env{
			Args: append(strings.Fields(args), "--url", "amqp://"+b.Addr(broker.AMQP), "queue://Q"), Stdout: &stdout, Stderr: &stderr,
			Factories: drivers.All(), Version: run.Version{Number: "v0.0.0"},
		})
		return ended{status, stdout.String(), stderr.String()}
	}
	for _, c := range []struct {
		flags   string
		status  int
		problem string
	}{
		{"--fail-on-foreign", exitFailed, "error: messages of another run or tool taken from the destinations and not counted: 7\n"},
		{"--fail-on-foreign --verify", exitFailed, "error: messages of another run or tool taken from the destinations and not counted: 7\n"},
		{"", exitOK, ""},
	} {
		require.Zero(t, perfmq("amqp producer --message-count 7").status)
		got := perfmq("amqp client --message-count 20 --json - " + c.flags)
		require.Equal(t, c.status, got.status, got.stderr)
		var records []struct{ TotalReceived, Foreign uint64 }
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &records))
		last := records[len(records)-1]
		require.Equal(t, []uint64{20, 7}, []uint64{last.TotalReceived, last.Foreign})
		require.Regexp(t, `(?m)^warning: messages of another run or tool are taken from the destinations and not counted, [1-7] so far; `+
			`--fail-on-foreign makes them a failure$`, got.stderr)
		require.Equal(t, 1, strings.Count(got.stderr, "warning: messages of another run or tool are taken"))
		require.Contains(t, got.stderr, c.problem)
		if c.status == exitOK {
			require.Contains(t, got.stderr, "--- warning: messages of another run or tool taken from the destinations and not counted: 7\n")
		}
	}
	got := perfmq("amqp client --message-count 20 --fail-on-foreign --verify")
	require.Equal(t, ended{0, got.stdout, ""}, got)

	// The same with the two sides of a verified run in separate commands, and seven messages of an earlier run in the
	// queue.
	require.Zero(t, perfmq("amqp producer --verify --message-count 7").status)
	sent, received := filepath.Join(t.TempDir(), "sent"), filepath.Join(t.TempDir(), "received")
	require.Zero(t, perfmq("amqp producer --message-count 20 --verify-file "+sent).status)
	require.Zero(t, perfmq("amqp consumer --message-count 27 --verify-file "+received).status)
	for flag, status := range map[string]int{"": exitOK, "--fail-on-foreign": exitFailed} {
		got := call(nil, strings.Fields("verify "+flag+" "+sent+" "+received)...)
		require.Equal(t, status, got.status, got.stderr)
		require.Equal(t, status == exitFailed, strings.Contains(got.stderr, "error: messages of another run or tool taken from the destinations and not counted: 7\n"), got.stderr)
	}
}

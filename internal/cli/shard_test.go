package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each case has one mistake about shards. All are found without connecting.
func TestShardMistakes(t *testing.T) {
	const all = "mem client --producers 5 --consumers 5 "
	for _, c := range []struct {
		args   string
		env    []string
		stderr string
	}{
		{args: all + "--shard 6/5 --run-id x", stderr: "error: --shard=6/5: must be NUMBER/COUNT, such as 2/5, or COUNT, which is 1000 at most\n"},
		{args: all + "--shard 5 --run-id x", stderr: "error: --shard 5: JOB_COMPLETION_INDEX=\"\" is not from 0 to 4\nhint: give --shard 1/5\n"},
		{
			args: all + "--shard 5 --run-id x", env: []string{"JOB_COMPLETION_INDEX=5"},
			stderr: "error: --shard 5: JOB_COMPLETION_INDEX=5 is not from 0 to 4\nhint: give --shard 1/5\n",
		},
		{args: all + "--shard 1/5", stderr: "error: --shard needs a --rendezvous, or the same --run-id or --start-at for all shards\nhint: add a --rendezvous, or the same --run-id or --start-at for all shards\n"},
		{args: all + "--run-id x", stderr: "error: --run-id needs --shard\nhint: add --shard\n"},
		{args: "mem client --shard 1/5 --run-id x", stderr: "error: --shard needs 5 producers and consumers\nhint: add 5 producers and consumers\n"},
		{args: "mem client --consumers 5 --message-count 9 --shard 1/5 --run-id x", stderr: "error: --shard needs --duration or --producers 5\nhint: add --duration or --producers 5\n"},
		{args: "mem consumer --consumers 5 --message-count 4 --shard 5/5 --run-id x --dry-run", stderr: "error: --shard needs --message-count 5 or more\nhint: add --message-count 5 or more\n"},
		{args: all + "--start-at noon", stderr: "error: --start-at=noon: must be like 2026-03-01T12:00:00Z, 1772366400 or +10s\n"},
	} {
		r := call(c.env, strings.Fields(c.args)...)
		require.Equal(t, exitUsage, r.status, c.args)
		require.Equal(t, c.stderr, r.stderr, c.args)
	}
	r := call(nil, strings.Fields(all+"--start-at 1000000000")...)
	require.Equal(t, exitUsage, r.status)
	require.Contains(t, r.stderr, "error: --start-at 2001-09-09T01:46:40Z is ")
	require.Contains(t, r.stderr, "by this machine's clock")
}

// A Kubernetes Job counts from 0.
func TestShardOfAJob(t *testing.T) {
	r := call([]string{"PERFMQ_SHARD=5", "PERFMQ_RUN_ID=job-1", "JOB_COMPLETION_INDEX=1"}, "mem", "client", "--producers", "5", "--dry-run")
	require.Equal(t, exitOK, r.status, r.stderr)
	require.Regexp(t, `(?m)^# note: this was --shard 2/5 of run [0-9]+;`, r.stdout)
}

// Shards with the same plan and start derive the same run number; another start or plan gives another number.
func TestShardsDeriveTheRun(t *testing.T) {
	run := func(args string) string {
		r := call(nil, strings.Fields("mem client --producers 5 --dry-run "+args)...)
		require.Equal(t, exitOK, r.status, r.stderr)
		for line := range strings.Lines(r.stdout) {
			if _, number, ok := strings.Cut(line, " of run "); ok {
				return number
			}
		}
		t.Fatal("no run", r.stdout)
		return ""
	}
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	moment := "--start-at " + at.UTC().Format(time.RFC3339)
	first := run("--shard 1/3 " + moment)
	require.Equal(t, first, run("--shard 3/3 "+moment))
	require.Equal(t, first, run("--shard 2/3 --start-at "+at.In(time.FixedZone("", 3600)).Format(time.RFC3339)))
	require.NotEqual(t, first, run("--shard 2/3 --rate 5 "+moment))
	require.NotEqual(t, first, run("--shard 2/3 --start-at "+at.Add(time.Second).UTC().Format(time.RFC3339)))
	require.NotEqual(t, first, run("--shard 2/3 --run-id x "+moment))
}

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each case has one mistake about shards. All are found without connecting.
func TestShardMistakes(t *testing.T) {
	const all = "mem client --producers 5 --consumers 5 "
	used := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(used, "shard-1"), 0o700))
	token, short := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "short")
	require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600))
	require.NoError(t, os.WriteFile(short, []byte("0123456789abcde\n"), 0o600))
	meet := " --rendezvous http://h:8443 --token-file " + token
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
		{args: all + "--shard 1/5 --rendezvous http://h:8443", stderr: "error: --token-file: --rendezvous needs the FILE of a token\nhint: openssl rand -hex 16 makes one\n"},
		{args: all + "--shard 1/5 --rendezvous http://h:8443 --token-file none", stderr: "error: --token-file: none: no such file or directory\nhint: check the path\n"},
		{args: all + "--shard 1/5 --rendezvous http://h:8443 --token-file " + short, stderr: "error: --token-file: the token in " + short + " is shorter than 16 characters\nhint: openssl rand -hex 16 makes one\n"},
		{args: all + "--shard 1/5 --token-file " + token, stderr: "error: --token-file needs --rendezvous\nhint: add --rendezvous\nerror: --shard needs a --rendezvous, or the same --run-id or --start-at for all shards\nhint: add a --rendezvous, or the same --run-id or --start-at for all shards\n"},
		{args: all + "--shard 1/5 --rendezvous-ca none --rendezvous https://h:8443 --token-file " + token, stderr: "error: --rendezvous-ca: read CA file: none: no such file or directory\nhint: check the path\n"},
		{args: all + meet, stderr: "error: --rendezvous needs --shard\nhint: add --shard\n"},
		{args: all + "--shard 1/5 --run-id x" + meet, stderr: "error: --rendezvous does not work with --run-id\nhint: leave one of them out\n"},
		{args: all + "--shard 1/5 --start-at +5s" + meet, stderr: "error: --rendezvous does not work with --start-at\nhint: leave one of them out\n"},
		{args: all + "--shard 1/5 --verify-window 10s" + meet, stderr: "error: --verify-window does not work with --rendezvous\nhint: --verify judges the joined result at the end\n"},
		{args: all + "--shard 1/5 --rendezvous amqp://h --token-file " + token, stderr: "error: --rendezvous=amqp://h: must be http://HOST:PORT or https://HOST:PORT\n"},
		{args: all + "--shard 1/5 --rendezvous http://h/path --token-file " + token, stderr: "error: --rendezvous=http://h/path: must be http://HOST:PORT or https://HOST:PORT\n"},
		{args: "merge --rendezvous :0", stderr: "error: --rendezvous needs --result\nhint: add --result\nerror: --rendezvous needs --shards\nhint: add --shards\nerror: --rendezvous needs the FILE of a token\nhint: openssl rand -hex 16 makes one\n"},
		{args: "merge --shards 3", stderr: "error: --shards needs --rendezvous\nhint: add --rendezvous\n"},
		{args: "merge --rendezvous-timeout 1m", stderr: "error: --rendezvous-timeout needs --rendezvous\nhint: add --rendezvous\n"},
		{args: "merge --rendezvous 8443 --shards 1 --result x --token-file " + token, stderr: "error: --rendezvous=8443: must be HOST:PORT, :PORT (on loopback) or [::]:PORT (on all addresses)\n"},
		{args: "merge --partial --rendezvous :0 --shards 1 --result x a b --token-file " + token, stderr: "error: --rendezvous does not work with --follow and --partial\nhint: the results that are there are always joined\nerror: --rendezvous takes no folders\nhint: the shards hand their results over\n"},
		{args: "merge --rendezvous :0 --shards 1 --result " + used + " --token-file " + token, stderr: "error: --result " + used + ": " + used + "/shard-1 is there already\nhint: name another folder\n"},
	} {
		r := call(c.env, strings.Fields(c.args)...)
		require.Equal(t, result.StatusUsage, r.status, c.args)
		assert.Equal(t, c.stderr, r.stderr, c.args)
	}
	r := call(nil, strings.Fields(all+"--start-at 1000000000")...)
	require.Equal(t, result.StatusUsage, r.status)
	require.Contains(t, r.stderr, "error: --start-at 2001-09-09T01:46:40Z is ")
	require.Contains(t, r.stderr, "by this machine's clock")
}

// A Kubernetes Job counts from 0.
func TestShardOfAJob(t *testing.T) {
	r := call([]string{"PERFMQ_SHARD=5", "PERFMQ_RUN_ID=job-1", "JOB_COMPLETION_INDEX=1"}, "mem", "client", "--producers", "5", "--dry-run")
	require.Equal(t, result.StatusOK, r.status, r.stderr)
	require.Regexp(t, `(?m)^# note: this was --shard 2/5 of run [0-9]+;`, r.stdout)
}

// Shards with the same plan and start derive the same run number; another start or plan gives another number.
func TestShardsDeriveTheRun(t *testing.T) {
	run := func(args string) string {
		r := call(nil, strings.Fields("mem client --producers 5 --dry-run "+args)...)
		require.Equal(t, result.StatusOK, r.status, r.stderr)
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

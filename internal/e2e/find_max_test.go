//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	sweeps "github.com/perfmq/perfmq/internal/sweep/record"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

// TestFindMax: the maximum found for a broker that serves 2000 messages a second is that (within 3%), unless the output
// names perfmq as the limit, as on a busy machine. Each tried rate has its result.
func TestFindMax(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"amqp", "stomp"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			findMax(t, protocol, 2000, "--rate", "1700", "--duration", "1.2s", "--warmup", "0.2s")
		})
	}
}

// findMax searches a broker that serves so many messages a second, and judges the rate that was found.
func findMax(t *testing.T, protocol string, capacity float64, args ...string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "found")
	r := run(t, 2*limit, append([]string{
		protocol, "client", "--embedded", "--embedded-faults", fmt.Sprintf("rate=%.0f", capacity),
		"--find-max", "transfer.p99 < 200ms", "--result", dir,
	}, args...)...)
	text, err := os.ReadFile(filepath.Join(dir, sweeps.SearchFile))
	require.NoError(t, err, r.stderr)
	var found sweeps.Search
	require.NoError(t, json.Unmarshal(text, &found))
	require.LessOrEqual(t, found.Rate, capacity*1.03, r.stdout)
	spoiled := found.Failed.Tester
	for i, p := range found.Points {
		require.Equal(t, p.Kept, p.Why == "", p)
		require.True(t, p.Rate <= capacity*1.03 || !p.Kept, p)
		spoiled = spoiled || p.Tester
		matches := musttest.Get(filepath.Glob(filepath.Join(dir, fmt.Sprintf("%03d-*", i+1))))(t)
		require.Len(t, matches, 1)
		one := musttest.Get(runresult.Read(matches[0]))(t)
		require.True(t, one.Complete)
	}
	switch r.status {
	case statusOK:
		require.True(t, found.Held)
		require.True(t, found.Rate >= capacity*0.97 || spoiled, r.stdout)
		require.Regexp(t, `(?m)^--- (maximum:|at least) `, r.stdout)
	default: // a machine so busy that no rate is held
		require.Contains(t, []int{statusThreshold, statusUndecided}, r.status, r.stderr)
		require.True(t, spoiled, r.stdout)
	}
}

// TestFindMaxLosesItsBroker: a broker that dies ends the search with the lost connection as the reason: neither is that a
// rate that was not kept, nor are the messages in it a matter of --drain-timeout.
func TestFindMaxLosesItsBroker(t *testing.T) {
	t.Parallel()
	b := serve(t, "--faults", "rate=500")
	p := start(t, "amqp", "client", "--url", b.at("amqp"), "--rate", "200", "--duration", "2", "--find-max", "transfer.p99 < 1s",
		"--result", filepath.Join(t.TempDir(), "found"), "queue://F")
	p.printed(" msg/s: ") // the first load has ended
	b.signal(syscall.SIGKILL)
	r := p.wait(limit)
	require.Contains(t, []int{statusFailed, statusConnect}, r.status, r.stderr) // the latter between two loads
	require.Regexp(t, "^error: (consumer|producer)-0: .*connect", r.stderr)
	require.NotContains(t, r.stdout, "FAILED")
	require.NotContains(t, r.stderr, "--drain-timeout")
	require.NotContains(t, r.stdout, "--- FOUND")
}

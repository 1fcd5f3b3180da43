//go:build unix

package e2e

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

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

package e2e

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
)

// TestEmbeddedStaysSmall: a broker in the same process does not let its backlog grow without an end when it confirms
// faster than the consumers receive. It took up to 1 GiB before it had a bound; now it takes about 130 MiB, depending
// on the machine.
func TestEmbeddedStaysSmall(t *testing.T) {
	t.Parallel()
	const most = 300 << 10 // KiB
	for _, protocol := range broker.Protocols() {
		t.Run(protocol, func(t *testing.T) {
			p := start(t, protocol, "client", "--embedded", "--max-pending", "1000", "--duration", "2", "queue://TEST")
			r := p.wait(limit)
			require.Equal(t, statusOK, r.status, r.stderr)
			require.Less(t, p.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss, int64(most), "KiB of memory at most")
		})
	}
}

//go:build unix

package amqp_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/store"
)

// python returns an interpreter that has Qpid Proton. The system's own comes first: that is where packages go.
func python(t testing.TB) string {
	t.Helper()
	for _, path := range []string{"/usr/bin/python3", "python3"} {
		if exec.CommandContext(soon(t), path, "-c", "import proton").Run() == nil {
			return path
		}
	}
	t.Fatal("this test needs Qpid Proton for Python: apt-get install -y python3-qpid-proton")
	return ""
}

// TestProton has Qpid Proton send and receive, in all modes of settlement, and in transactions.
func TestProton(t *testing.T) {
	r := start(t, store.Config{}, amqp.Options{})
	path := python(t)
	run := func(mode, address string) {
		out, err := exec.CommandContext(soon(t), path, "testdata/proton_client.py", mode, "amqp://"+r.addr, address, "1000").CombinedOutput()
		require.NoError(t, err, "%s: %s", mode, out)
		require.Equal(t, "OK 1000", strings.TrimSpace(string(out)), mode)
	}
	for _, mode := range []string{"", "-settled", "-second"} {
		run("send"+mode, "Q"+mode)
		run("receive"+mode, "Q"+mode)
		r.stats(queue("Q"+mode), func(d store.DestinationStats) bool { return d.Queues[0].Settled == 1000 && d.Queues[0].Depth == 0 })
	}
	run("transactions", "TX")
	run("receive", "TX")
	r.stats(queue("TX"), func(d store.DestinationStats) bool { return d.Sent == 1000 && d.Queues[0].Settled == 1000 })
}

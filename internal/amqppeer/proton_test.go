//go:build unix

package amqppeer

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// python returns an interpreter that has Qpid Proton. The system's own comes first: that is where packages go.
func python(t *testing.T) string {
	t.Helper()
	brokertest.Needs(t, "Python")
	for _, path := range []string{"/usr/bin/python3", "python3"} {
		if exec.CommandContext(t.Context(), path, "-c", "import proton").Run() == nil {
			return path
		}
	}
	t.Fatal("this test needs Qpid Proton for Python: apt-get install -y python3-qpid-proton")
	return ""
}

// protonBroker starts a broker made of Qpid Proton and returns its URL.
func protonBroker(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(python(t), "testdata/proton_broker.py")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(stderr.String())
		}
	})
	port, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "%s", &stderr)
	return "amqp://127.0.0.1:" + strings.TrimSpace(port)
}

// TestProton sends messages through a broker that says nothing of settle modes.
func TestProton(t *testing.T) {
	url := protonBroker(t)
	run(t, "Proton", func(t *testing.T, c client) error {
		for i, option := range []string{"settle=at-least-once", "settle=at-most-once"} {
			d := c.open(t, url, option)
			dest := queue(fmt.Sprintf("q %s %d", c.name, i))
			s, err := trySending(t, d, driver.ProducerSpec{Destination: dest, MaxPending: 10, Variants: plain("x")})
			if err != nil {
				return err
			}
			if err := s.accepted(500); err != nil {
				return err
			}
			if _, err := receive(t, c.open(t, url), dest, 500); err != nil {
				return err
			}
		}
		return nil
	})
}
